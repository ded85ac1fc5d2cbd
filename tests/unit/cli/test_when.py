import re

import pytest

from consumer.cli.when import after, at, moment
from consumer.core.errors import SettingsError

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("1.5", 1.5), ("90s", 90), ("30m", 1_800), ("2h", 7_200), ("0.5h", 1_800), ("7d", 604_800)],
)
def test_a_duration_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert after(text, "--delay", NOW) == NOW + seconds * 1000


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1e9", "nan", "inf", "2 h", "2w", "h", "1,5", "٣", "9" * 20, "2h30m", "0x10"]
)
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(f"--delay {text!r} is no duration: wanted a number of seconds")):
        after(text, "--delay", NOW)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("2023-11-14 22:13:20.500+00:00", NOW + 500),
        ("1970-01-01T00:00Z", 0),
    ],
)
def test_a_time_has_a_zone(text: str, milliseconds: int) -> None:
    assert at(text, "--at") == milliseconds


@pytest.mark.parametrize("text", ["2023-11-14T22:13:20", "2023-11-14", "20231114"])
def test_a_time_without_a_zone_is_refused_since_nobody_knows_which(text: str) -> None:
    with pytest.raises(SettingsError, match="has no zone: wanted a time with its zone, such as 20"):
        at(text, "--at")


@pytest.mark.parametrize("text", ["", "tomorrow", "10:00Z", "2023-13-01T00:00Z", "1700000000"])
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(SettingsError, match=f"--at {text!r} is no time"):
        at(text, "--at")


def test_what_lies_beyond_the_calendar_is_out_of_range() -> None:
    with pytest.raises(SettingsError, match="--at '1969-12-31T00:00Z' is out of range"):
        at("1969-12-31T00:00Z", "--at")
    with pytest.raises(SettingsError, match="--delay '999999999999' is out of range"):
        after("999999999999", "--delay", NOW)


def test_a_moment_is_either_a_duration_from_now_or_a_time() -> None:
    assert moment("2h", "--deadline", NOW) == NOW + 7_200_000
    assert moment("2023-11-14 22:13:20Z", "--deadline", NOW - 5) == NOW
    with pytest.raises(SettingsError, match=r"'21:00Z' is no duration: wanted a number.* or a time with its"):
        moment("21:00Z", "--deadline", NOW)
