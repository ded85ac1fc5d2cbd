"""What a job itself says about whether it may start now."""

from consumer.core.admission import AdmissionRules, turned_away
from consumer.core.disposition import DeadLetter, Defer
from consumer.core.job import Job, Message
from consumer.core.policy import KindPolicy
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
    later = Message(b"1", {headers.FIRST_DEFERRED: NOW - 60_000})
    verdict = turned_away(later, job, None, RULES, NOW)
    assert isinstance(verdict, DeadLetter)
    assert verdict.fault.code is Code.UNKNOWN_KIND


def test_the_last_wait_of_an_unknown_kind_ends_with_its_grace() -> None:
    soon = Message(b"1", {headers.FIRST_DEFERRED: NOW - 59_000})
    assert turned_away(soon, Job("new", "a", b"1"), None, RULES, NOW) == Defer(NOW + 1_000, "unknown_kind")


def test_a_forged_first_deferral_is_taken_as_now() -> None:
    for forged in (NOW + 1, -1, True, "x", None):
        message = Message(b"1", {headers.FIRST_DEFERRED: forged})
        assert turned_away(message, Job("new", "a", b"1"), None, RULES, NOW) == Defer(NOW + 5_000, "unknown_kind")
