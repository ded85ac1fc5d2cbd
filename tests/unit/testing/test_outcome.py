from typing import Any

import pytest

from consumer import DependencyDown, Reject, job
from consumer.testing import run


@job("outcome.any")
def handler(payload: Any) -> Any:
    if payload == "down":
        raise DependencyDown("bank", after=60)
    if payload == "fails":
        raise ConnectionError("no answer")
    if payload == "rejects":
        raise Reject("no such account")
    return payload


@pytest.mark.parametrize(
    ("payload", "story"),
    [
        (1, "succeeded with 1"),
        ("fails", "failed, and is retried in 0.75 s: ConnectionError: no answer"),
        ("down", "was put off for 60.0 s: consumer.worker.handler.DependencyDown: bank is down"),
        ("rejects", "became a dead letter (rejected): consumer.worker.handler.Reject: no such account"),
        (b"{", "became a dead letter (invalid_json): consumer.core.strict_json.StrictJsonError: "),
    ],
)
def test_what_pytest_shows_of_an_outcome_tells_its_story(payload: Any, story: str) -> None:
    assert repr(run(handler, payload)).startswith(f"<attempt 1 of outcome.any 'test' {story}")


def test_a_long_result_is_shown_in_part() -> None:
    assert len(repr(run(handler, "x" * 10_000))) < 200


def test_what_was_expected_is_handed_on() -> None:
    assert run(handler, 1).expect("succeeded").result == 1
    assert run(handler, "rejects").expect("dead_letter").expect("rejected").error == "no such account"


def test_what_was_not_expected_fails_the_test_and_brings_the_handlers_own_error() -> None:
    outcome = run(handler, "fails")
    with pytest.raises(
        AssertionError, match=r"expected succeeded, but attempt 1 of .* ConnectionError: no answer"
    ) as e:
        outcome.expect("succeeded")
    assert e.value.__cause__ is outcome.exception


def test_an_expectation_that_nothing_can_meet_is_the_tests_mistake() -> None:
    with pytest.raises(ValueError, match=r"nothing can end as 'success': expect one of succeeded, retry, "):
        run(handler, 1).expect("success")
