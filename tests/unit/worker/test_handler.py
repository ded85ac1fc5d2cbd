import time
from typing import Any

import pytest

from consumer import JobContext, job
from consumer.core.policy import Jitter, KindPolicy, RetryPolicy
from consumer.worker import handler
from tests.support.stages import Stage


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> list[handler.Handler]:
    fresh: list[handler.Handler] = []
    monkeypatch.setattr(handler, "declared", fresh)
    return fresh


def double(payload: int) -> int:
    return 2 * payload


def test_a_declared_function_stays_what_it_was(declared: list[handler.Handler]) -> None:
    assert job("double")(double) is double
    assert [each.place for each in declared] == ["tests.unit.worker.test_handler.double"]


def test_the_policy_of_a_kind_is_written_at_its_handler(declared: list[handler.Handler]) -> None:
    job("a", timeout=3, max_attempts=2, backoff=4, backoff_cap=9, jitter="full", retry_on=[KeyError, "x.Y"])(double)
    retry = RetryPolicy(2, 4, 9, Jitter.FULL, retry_on=frozenset({"builtins.KeyError", "x.Y"}))
    assert declared[0].policy == KindPolicy("a", 3.0, retry)


def test_a_decorator_without_a_kind_is_explained() -> None:
    with pytest.raises(TypeError, match=r'@job\("kind"\)'):
        job(double)  # type: ignore[arg-type]


def test_a_timeout_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="timeout of kind 'a' is 0; it must be above 0"):
        job("a", timeout=0)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"backoff": -1}, "backoff of kind 'a' is -1; it must be above 0"),
        ({"timeout": float("inf")}, "timeout of kind 'a' is inf"),
        ({"budget": float("inf")}, "budget of kind 'a' is inf; it must be 0, for no limit, or above"),
        ({"retry_on": "KeyError"}, "retry_on of kind 'a' is one text; it must be a list of errors"),
    ],
)
def test_a_policy_that_can_not_be_meant_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        job("a", **said)


def test_time_left_ends_with_the_deadline_or_the_timeout_whichever_is_first() -> None:
    now, clock = time.time() * 1000, time.monotonic()
    assert 9 < JobContext("k", "k", 1, None, clock + 10, Stage()).time_left() <= 10
    assert 4 < JobContext("k", "k", 1, int(now + 5000), clock + 10, Stage()).time_left() <= 5
    assert JobContext("k", "k", 1, int(now - 5000), clock + 10, Stage()).time_left() == 0
