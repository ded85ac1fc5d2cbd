from datetime import UTC, datetime
from typing import Any

import pytest

from consumer.core.fields import MAX_TIME, count, first, first_time, first_traceparent, flaw

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("value", "is_read_as"),
    [(3, 3), (0, 1), (-5, 1), (10**30, 1000), ("3", 1), (True, 1), (None, 1), (b"3", 1), ({}, 1), (2.0, 1)],
)
def test_an_attempt_is_clamped_and_is_1_where_it_is_no_integer(value: Any, is_read_as: int) -> None:
    assert count(value, 1, 1000) == is_read_as


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (1_700_000_000_000, 1_700_000_000_000),
        ("1700000000000", 1_700_000_000_000),
        (1.7e12, 1_700_000_000_000),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20.5+01:00", 1_700_000_000_500),
        (0, 0),
        (MAX_TIME, MAX_TIME),
        (MAX_TIME + 1, None),
        (2**63, None),
        (10**400, None),
        (-1, None),
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        ("2023-11-14T22:13:20", None),
        (datetime(2023, 11, 14), None),  # noqa: DTZ001 - the point of the case
        ("soon", None),
        ("9" * 5000, None),
        (b"1700000000000", None),
        ({"a": 1}, None),
        (None, None),
    ],
)
def test_a_time_is_read_in_any_usual_form_and_is_absent_otherwise(value: Any, milliseconds: int | None) -> None:
    assert first_time(value) == milliseconds


def test_the_first_readable_time_wins() -> None:
    assert first_time(None, "soon", 5, 6) == 5


@pytest.mark.parametrize(
    "malformed",
    [
        "",
        TRACEPARENT.upper(),
        TRACEPARENT + "\n",
        TRACEPARENT[:-1],
        TRACEPARENT + "-x",
        "ff" + TRACEPARENT[2:],
        "00-" + "0" * 32 + TRACEPARENT[35:],
        TRACEPARENT[:36] + "0" * 16 + "-01",
        TRACEPARENT.encode(),
        None,
        5,
    ],
)
def test_a_malformed_traceparent_is_ignored(malformed: Any) -> None:
    assert first_traceparent(malformed, TRACEPARENT) == TRACEPARENT
    assert first_traceparent(malformed) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (None, "missing"),
        (b"k", "not text"),
        (True, "not text"),
        (["k"], "not text"),
        ("k" * 11, "longer than 10"),
        ("a\nb", "control"),
        ("a\x00", "control"),
        ("a\x7f", "control"),
        ("a\x9f", "control"),
        ("\ud83d", "surrogate"),
    ],
)
def test_a_name_with_a_flaw_says_which(name: Any, says: str) -> None:
    assert says in flaw(name, 10)


@pytest.mark.parametrize("name", ["k", "k" * 10, "ä \u2028", "orders/1 2", "\U0001f600"])
def test_any_other_text_is_a_name(name: str) -> None:
    assert flaw(name, 10) == ""


def test_the_first_name_that_is_there_wins_and_an_integer_is_its_text() -> None:
    assert first(None, "", "a", "b") == "a"
    assert first(42, "b") == "42"
    assert first(None, "") is None
    assert flaw(first(10**5000), 500) == "is not text"
