"""Decide, on its own: which outcome leads where, and when a retry is due."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from consumer.core.disposition import Complete, DeadLetter, Defer, Duplicate, Release, Retry
from consumer.core.job import Fault, Job
from consumer.core.outcome import Crashed, Failed, Interrupted, Succeeded, TimedOut, Usage
from consumer.core.policy import Jitter, RetryPolicy
from consumer.core.retry import decide, last_moment, wait_seconds
from schemas.codes import Code

NOW = 1_000_000
POLICY = RetryPolicy(max_attempts=3, base=1.0, cap=8.0, jitter=Jitter.NONE)
USAGE = Usage()


def failed(*types: str, code: Code = Code.ATTEMPTS_EXHAUSTED, retryable: bool | None = None) -> Failed:
    return Failed(Fault(code, types[0] if types else "E", "no"), USAGE, retryable, types=types)


def certain() -> float:
    return 0.5


def test_a_success_is_completed() -> None:
    outcome = Succeeded(b"1", USAGE)
    assert decide(outcome, 1, POLICY, None, NOW, certain) == Complete(outcome)


def test_an_interruption_gives_the_delivery_back_uncharged() -> None:
    assert decide(Interrupted("drain"), 3, POLICY, None, NOW, certain) == Release("drain")


def test_a_failure_is_tried_again_as_the_next_attempt_after_the_backoff() -> None:
    retry = decide(failed("app.Odd"), 2, POLICY, None, NOW, certain)
    assert isinstance(retry, Retry)
    assert (retry.attempt, retry.due) == (3, NOW + 2000)


def test_the_last_attempt_is_given_up_under_the_code_of_its_kind_of_failure() -> None:
    for outcome, code in (
        (failed("app.Odd"), Code.ATTEMPTS_EXHAUSTED),
        (TimedOut(Fault(Code.EXECUTION_TIMEOUT, "T", ""), USAGE), Code.EXECUTION_TIMEOUT),
        (Crashed(Fault(Code.WORKER_CRASHED, "C", ""), USAGE), Code.WORKER_CRASHED),
        (Crashed(Fault(Code.OUT_OF_MEMORY, "C", ""), USAGE), Code.OUT_OF_MEMORY),
    ):
        given_up = decide(outcome, 3, POLICY, None, NOW, certain)
        assert isinstance(given_up, DeadLetter)
        assert given_up.fault.code is code


def test_an_error_that_a_second_try_cannot_mend_is_rejected_at_once() -> None:
    outcome = failed("json.decoder.JSONDecodeError", "builtins.ValueError", "builtins.Exception")
    verdict = decide(outcome, 1, POLICY, None, NOW, certain)
    assert isinstance(verdict, DeadLetter)
    assert verdict.fault.code is Code.REJECTED


def test_the_most_specific_type_decides() -> None:
    refused = failed("builtins.ConnectionRefusedError", "builtins.ConnectionError", "builtins.OSError")
    forbidden = failed("builtins.PermissionError", "builtins.OSError", "builtins.Exception")
    assert isinstance(decide(refused, 1, POLICY, None, NOW, certain), Retry)
    assert isinstance(decide(forbidden, 1, POLICY, None, NOW, certain), DeadLetter)


def test_a_kinds_own_rules_come_before_ours() -> None:
    stubborn = RetryPolicy(retry_on=frozenset({"ValueError"}))
    done_with = RetryPolicy(no_retry_on=frozenset({"builtins.ConnectionError"}))
    assert isinstance(decide(failed("builtins.ValueError"), 1, stubborn, None, NOW, certain), Retry)
    assert isinstance(decide(failed("builtins.ConnectionError"), 1, done_with, None, NOW, certain), DeadLetter)


def test_of_a_kinds_own_rules_the_one_for_the_most_specific_type_decides() -> None:
    rules = RetryPolicy(retry_on=frozenset({"OSError"}), no_retry_on=frozenset({"PermissionError", "Exception"}))
    forbidden = failed("builtins.PermissionError", "builtins.OSError", "builtins.Exception")
    busy = failed("builtins.BlockingIOError", "builtins.OSError", "builtins.Exception")
    assert isinstance(decide(forbidden, 1, rules, None, NOW, certain), DeadLetter)
    assert isinstance(decide(busy, 1, rules, None, NOW, certain), Retry)


def test_the_handlers_word_comes_before_every_rule() -> None:
    again = failed("builtins.ValueError", retryable=True)
    never = failed("builtins.ConnectionError", code=Code.REJECTED, retryable=False)
    assert isinstance(decide(again, 1, POLICY, None, NOW, certain), Retry)
    assert isinstance(decide(never, 1, POLICY, None, NOW, certain), DeadLetter)


def test_a_bad_payload_or_result_is_never_tried_again() -> None:
    for code in (Code.INVALID_PAYLOAD, Code.INVALID_JSON, Code.RESULT_NOT_JSON, Code.RESULT_TOO_LARGE):
        verdict = decide(failed("E", code=code), 1, POLICY, None, NOW, certain)
        assert isinstance(verdict, DeadLetter)
        assert verdict.fault.code is code


def test_a_wait_that_would_pass_the_deadline_ends_it_now() -> None:
    late = decide(failed("app.Odd"), 1, POLICY, NOW + 1000, NOW, certain)
    in_time = decide(failed("app.Odd"), 1, POLICY, NOW + 1001, NOW, certain)
    assert isinstance(late, DeadLetter)
    assert late.fault.code is Code.DEADLINE_EXCEEDED
    assert isinstance(in_time, Retry)


def test_an_advised_wait_counts_where_it_is_the_longer_one() -> None:
    assert wait_seconds(POLICY, 1, 30.0, certain) == 30.0
    assert wait_seconds(POLICY, 3, 1.0, certain) == 4.0


@given(attempt=st.integers(1, 1000), chance=st.floats(0, 1, exclude_max=True), jitter=st.sampled_from(Jitter))
def test_every_wait_lies_within_the_documented_bounds(attempt: int, chance: float, jitter: Jitter) -> None:
    policy = RetryPolicy(base=1.0, cap=8.0, jitter=jitter)
    whole = min(8.0, 2.0 ** (attempt - 1))
    low = {Jitter.EQUAL: whole / 2, Jitter.FULL: 0.0, Jitter.NONE: whole}[jitter]
    assert low <= wait_seconds(policy, attempt, None, lambda: chance) <= whole


def test_what_the_server_said_decides_over_the_type_of_the_error_and_the_rules_of_the_kind_over_both() -> None:
    for status, expected in ((429, Retry), (503, Retry), (404, DeadLetter), (400, DeadLetter)):
        outcome = Failed(Fault(Code.ATTEMPTS_EXHAUSTED, "E", "no"), USAGE, types=("a.HTTPError",), http_status=status)
        assert isinstance(decide(outcome, 1, POLICY, None, NOW, certain), expected), status
    stubborn = replace(POLICY, retry_on=frozenset({"HTTPError"}))
    gone = Failed(Fault(Code.ATTEMPTS_EXHAUSTED, "E", "no"), USAGE, types=("a.HTTPError",), http_status=404)
    assert isinstance(decide(gone, 1, stubborn, None, NOW, certain), Retry)


def test_a_dependency_that_is_down_costs_no_attempt_not_even_the_last_one() -> None:
    outcome = Failed(Fault(Code.ATTEMPTS_EXHAUSTED, "E", "no"), USAGE, after=30.0, dependency="partner-api")
    assert decide(outcome, 3, POLICY, None, NOW, certain) == Defer(NOW + 30_000, "dependency_down")
    given_up = decide(outcome, 3, POLICY, NOW + 29_999, NOW, certain)
    assert isinstance(given_up, DeadLetter)
    assert given_up.fault.code is Code.DEADLINE_EXCEEDED


def test_a_job_whose_dependency_is_down_comes_back_with_its_kind_and_not_after_its_backoff() -> None:
    outcome = Failed(Fault(Code.ATTEMPTS_EXHAUSTED, "E", "no"), USAGE, dependency="partner-api")
    patient = replace(POLICY, base=600.0, cap=600.0)
    assert decide(outcome, 1, patient, NOW + 8_000, NOW, certain, NOW + 7_500) == Defer(NOW + 7_500, "dependency_down")


def test_a_run_that_was_cancelled_needs_nothing_more() -> None:
    assert decide(Interrupted("cancelled"), 1, POLICY, None, NOW, certain) == Duplicate("cancelled")


def test_the_last_moment_is_the_deadline_or_the_end_of_the_budget_whichever_is_first() -> None:
    job = Job("k", "a", b"1", since=NOW - 1_000)
    frugal = replace(POLICY, budget=5.0)
    assert last_moment(job, POLICY, NOW) is None
    assert last_moment(job, frugal, NOW) == NOW + 4_000
    assert last_moment(replace(job, since=None), frugal, NOW) == NOW + 5_000
    assert last_moment(replace(job, deadline=NOW + 7), frugal, NOW) == NOW + 7
    assert last_moment(replace(job, deadline=NOW + 9_000), frugal, NOW) == NOW + 4_000
