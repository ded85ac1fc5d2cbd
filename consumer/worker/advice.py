"""What a server said about trying again, read off an HTTP error by its shape: none of the libraries is imported.

httpx.HTTPStatusError, requests.HTTPError   error.response.status_code, error.response.headers
aiohttp.ClientResponseError                 error.status, error.headers
urllib.error.HTTPError                      error.code, error.headers
"""

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

STATUSES = range(100, 600)
LONGEST = 365 * 86_400.0
"""Seconds. Who asks for more doesn't mean it."""


class Advice(NamedTuple):
    """`after` in seconds."""

    http_status: int | None = None
    after: float | None = None


def of(error: BaseException, now: float) -> Advice:
    """`now` is epoch seconds."""
    return asked(lambda: _of(error, now), Advice())


def asked(question: Callable[[], T], otherwise: T) -> T:
    """An answer, whatever the question raises: attributes of errors are other people's code."""
    try:
        return question()
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001 - SystemExit ends no child here
        return otherwise


def _of(error: BaseException, now: float) -> Advice:
    answer: Any = getattr(error, "response", None)
    if answer is None:
        answer = error
    if not hasattr(answer, "headers"):
        return Advice()
    for name in ("status_code", "status", "code"):
        status = getattr(answer, name, None)
        if isinstance(status, int) and status in STATUSES:
            return Advice(int(status), asked(lambda: _retry_after(answer.headers, now), None))
    return Advice()


def _retry_after(headers: Any, now: float) -> float | None:
    """A date is compared with the server's own clock where it told its time: ours may be off."""
    told = _header(headers, "retry-after")
    if told is None:
        return None
    server_time = _date(_header(headers, "date") or "")
    return seconds(told, now if server_time is None else server_time)


def _header(headers: Any, name: str) -> str | None:
    """By any spelling: not every library's headers are without case."""
    for key, value in headers.items():
        if isinstance(key, str) and key.lower() == name:
            return str(value)
    return None


def seconds(after: object, now: float) -> float | None:
    """An advised wait: a number of seconds, or text as in a Retry-After header (seconds or an HTTP date).

    None where it is none of these, or no wait at all.
    """
    if isinstance(after, bool):
        return None
    if isinstance(after, str):
        text = after.strip()
        if text.isascii() and text.isdigit():
            return min(float(text), LONGEST)
        date = _date(text)
        return None if date is None else min(max(date - now, 0.0), LONGEST)
    if isinstance(after, int | float) and 0 <= after < inf:
        return float(min(after, LONGEST))
    return None


def _date(text: str) -> float | None:
    """The three forms of RFC 9110, in epoch seconds."""
    from datetime import UTC  # noqa: PLC0415 - only where an error carries a date
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
