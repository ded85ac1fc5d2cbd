"""What a job itself says about whether it may start now."""

from dataclasses import replace

from consumer.core.admission import AdmissionRules, put_off, turned_away
from consumer.core.disposition import DeadLetter, Defer
from consumer.core.job import Job, Message
from consumer.core.policy import KindPolicy, RetryPolicy
from schemas import headers
from schemas.codes import Code

NOW = 1_000_000
RULES = AdmissionRules(tick=100, unknown_kind_grace=60_000)
POLICY = KindPolicy("k")


def test_a_job_without_conditions_may_start() -> None:
    assert turned_away(Message(b"1"), Job("k", "a", b"1"), POLICY, RULES, NOW) is None


def test_no_attempt_starts_at_or_after_its_deadline() -> None:
    verdict = turned_away(Message(b"1"), Job("k", "a", b"1", deadline=NOW), POLICY, RULES, NOW)
    assert isinstance(verdict, DeadLetter)
    assert verdict.fault.code is Code.DEADLINE_EXCEEDED


def test_a_copy_that_comes_back_before_it_is_due_goes_round_again_but_a_tick_early_is_due() -> None:
    early = turned_away(Message(b"1"), Job("k", "a", b"1", due=NOW + 101), POLICY, RULES, NOW)
    assert early == Defer(NOW + 101, "not_due")
    assert turned_away(Message(b"1"), Job("k", "a", b"1", due=NOW + 100), POLICY, RULES, NOW) is None


def test_an_unknown_kind_is_put_off_within_its_grace_and_dead_lettered_after_it() -> None:
    job = Job("new", "a", b"1")
    assert turned_away(Message(b"1"), job, None, RULES, NOW) == Defer(NOW + 5_000, "unknown_kind")
    later = Message(b"1", {headers.UNKNOWN_SINCE: NOW - 60_000})
    verdict = turned_away(later, job, None, RULES, NOW)
    assert isinstance(verdict, DeadLetter)
    assert verdict.fault.code is Code.UNKNOWN_KIND


def test_the_last_wait_of_an_unknown_kind_ends_with_its_grace() -> None:
    soon = Message(b"1", {headers.UNKNOWN_SINCE: NOW - 59_000})
    assert turned_away(soon, Job("new", "a", b"1"), None, RULES, NOW) == Defer(NOW + 1_000, "unknown_kind")


def test_a_forged_time_since_which_a_kind_is_unknown_is_taken_as_now() -> None:
    for forged in (NOW + 1, -1, True, "x", None):
        message = Message(b"1", {headers.UNKNOWN_SINCE: forged})
        assert turned_away(message, Job("new", "a", b"1"), None, RULES, NOW) == Defer(NOW + 5_000, "unknown_kind")


def test_a_wait_that_would_pass_the_deadline_ends_now() -> None:
    job = Job("k", "a", b"1", due=NOW + 5_000, deadline=NOW + 4_000)
    verdict = turned_away(Message(b"1"), job, POLICY, RULES, NOW)
    assert isinstance(verdict, DeadLetter)
    assert verdict.fault.code is Code.DEADLINE_EXCEEDED
    assert put_off(job, POLICY, NOW + 3_999, "x") == Defer(NOW + 3_999, "x")


def test_no_attempt_starts_after_the_time_budget_of_its_kind() -> None:
    policy = KindPolicy("k", retry=RetryPolicy(budget=10.0))
    begun = Job("k", "a", b"1", attempt=2, since=NOW - 10_000)
    verdict = turned_away(Message(b"1"), begun, policy, RULES, NOW)
    assert isinstance(verdict, DeadLetter)
    assert (verdict.fault.code, "budget" in verdict.fault.message) == (Code.DEADLINE_EXCEEDED, True)
    assert turned_away(Message(b"1"), begun, policy, RULES, NOW - 1) is None


def test_a_wait_that_would_pass_the_time_budget_ends_now_once_the_job_was_begun() -> None:
    policy = KindPolicy("k", retry=RetryPolicy(budget=10.0))
    begun = Job("k", "a", b"1", since=NOW - 1_000)
    assert isinstance(put_off(begun, policy, NOW + 9_000, "x"), DeadLetter)
    assert put_off(begun, policy, NOW + 8_999, "x") == Defer(NOW + 8_999, "x")
    assert put_off(replace(begun, since=None), policy, NOW + 60_000, "x") == Defer(NOW + 60_000, "x")


def test_a_job_that_waited_too_long_for_its_first_start_is_given_up_but_not_one_that_was_begun_or_not_due() -> None:
    policy = KindPolicy("k", wait_timeout=60.0)
    old = Job("k", "a", b"1", submitted_at=NOW - 60_001)
    verdict = turned_away(Message(b"1"), old, policy, RULES, NOW)
    assert isinstance(verdict, DeadLetter)
    assert verdict.fault.code is Code.WAIT_TIMEOUT
    for fine in (
        replace(old, submitted_at=NOW - 60_000),
        replace(old, submitted_at=None),
        replace(old, since=NOW - 100),
        replace(old, attempt=2),
        replace(old, generation=1),
    ):
        assert turned_away(Message(b"1"), fine, policy, RULES, NOW) is None


def test_what_the_producer_wanted_it_to_wait_is_not_counted_as_waiting_but_what_we_put_it_off_is() -> None:
    policy = KindPolicy("k", wait_timeout=60.0)
    old = Job("k", "a", b"1", submitted_at=NOW - 60_001, due=NOW - 1)
    wanted = Message(b"1", {headers.NOT_BEFORE: NOW - 60_000})
    assert turned_away(wanted, old, policy, RULES, NOW) is None
    cooled = Message(b"1", {headers.DUE: NOW - 1})
    assert isinstance(turned_away(cooled, old, policy, RULES, NOW), DeadLetter)
