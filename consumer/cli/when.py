"""Times as people write them on a command line, as epoch milliseconds."""

import re
from datetime import datetime

from consumer.core.errors import SettingsError
from consumer.core.fields import MAX_TIME

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)([smhd]?)")
_DURATION_WANTED = "wanted a number of seconds, or one with a unit such as 90s, 30m, 2h or 7d"
_TIME = "a time with its zone, such as 2030-01-31T06:00Z or 2030-01-31T06:00+01:00"
_TIME_WANTED = f"wanted {_TIME}"
_EITHER_WANTED = f"{_DURATION_WANTED}; or {_TIME}"


def after(text: str, option: str, now: int, wanted: str = _DURATION_WANTED) -> int:
    """The end of a duration that begins now. Raises SettingsError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise SettingsError(f"{option} {text!r} is no duration: {wanted}")
    number, unit = found.groups()
    return _known(now + round(float(number) * _UNITS[unit] * 1000), text, option)


def at(text: str, option: str) -> int:
    """A time with its zone. Raises SettingsError."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(f"{option} {text!r} is no time: {_TIME_WANTED}") from None
    if time.tzinfo is None:
        raise SettingsError(f"{option} {text!r} has no zone: {_TIME_WANTED}")
    return _known(round(time.timestamp() * 1000), text, option)


def moment(text: str, option: str, now: int) -> int:
    """Either of the two: a date has a dash inside."""
    return at(text, option) if "-" in text[1:] else after(text, option, now, _EITHER_WANTED)


def past(text: str, option: str, now: int) -> int:
    """Likewise, but a duration ended now: 2h is two hours ago."""
    return (
        at(text, option)
        if "-" in text[1:]
        else _known(2 * now - after(text, option, now, _EITHER_WANTED), text, option)
    )


def _known(milliseconds: int, text: str, option: str) -> int:
    if not 0 <= milliseconds <= MAX_TIME:
        raise SettingsError(f"{option} {text!r} is out of range: wanted a time between the years 1970 and 9999")
    return milliseconds
