"""Reading what producers may have put anything into: headers, properties, members of an envelope.

Nothing here raises. What can't be read counts as absent, except for a name: there a guess could give one
job's key to another, so a name with a flaw refuses the message.
"""

import re
from datetime import datetime
from typing import Any

MAX_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999."""

_MAX_BITS = 1024
"""Python refuses to write very long integers as text."""
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TRACEPARENT = re.compile("(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_DIGITS = re.compile("[0-9]{1,15}")


def first(*candidates: Any) -> Any:
    """The first that is there. Integer ids are common; as a name they are their decimal text."""
    for value in candidates:
        if value is not None and value != "":
            return str(value) if _is_integer(value) and value.bit_length() <= _MAX_BITS else value
    return None


def flaw(name: Any, limit: int) -> str:
    """What is wrong with a name, as the end of a sentence; empty where nothing is."""
    if name is None:
        return "is missing"
    if not isinstance(name, str):
        return "is not text"
    if len(name) > limit:
        return f"is longer than {limit} characters"
    if not name.isprintable() and _UNPRINTABLE.search(name):
        return "holds a control character or half of a surrogate pair"
    return ""


def count(value: Any, least: int, most: int) -> int:
    return min(max(value, least), most) if _is_integer(value) else least


def first_time(*candidates: Any) -> int | None:
    """The first that can be read as a time, in epoch milliseconds."""
    for value in candidates:
        if value is not None and (time := _time(value)) is not None:
            return time
    return None


def first_traceparent(*candidates: Any) -> str | None:
    for value in candidates:
        if isinstance(value, str) and _TRACEPARENT.fullmatch(value):
            return value
    return None


def _time(value: Any) -> int | None:
    """From milliseconds, as a number or as its digits, from an AMQP timestamp, or from RFC 3339 text."""
    try:
        if isinstance(value, str) and not _DIGITS.fullmatch(value):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            # without a zone it would be read in that of this machine
            value = value.timestamp() * 1000 if value.tzinfo else -1
        readable = isinstance(value, (int, float, str)) and not isinstance(value, bool)
        time = int(value) if readable else -1
    except (ValueError, OverflowError):
        return None
    return time if 0 <= time <= MAX_TIME else None


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
