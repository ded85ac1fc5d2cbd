"""Hop 3, its pure half: whether a job may start now, as far as the job itself can tell."""

from dataclasses import dataclass

from consumer.core.disposition import DeadLetter, Defer, Disposition
from consumer.core.fields import first_time
from consumer.core.job import Fault, Job, Message
from consumer.core.policy import KindPolicy
from consumer.core.retry import last_moment
from schemas import headers
from schemas.codes import Code

UNKNOWN_KIND = "unknown_kind"
UNKNOWN_KIND_WAIT = 5_000
"""Milliseconds until it is seen whether somebody here knows the kind by then."""


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """Milliseconds. `tick` is how early a copy may come back and still count as due.

    `unknown_kind_grace`: how long a kind may be unknown, since producers can be deployed before us.
    """

    tick: int
    unknown_kind_grace: int


def turned_away(
    message: Message, job: Job, policy: KindPolicy | None, rules: AdmissionRules, now: int
) -> Disposition | None:
    """Return what to do with a job that can't start now, or None where it can."""
    late = _too_late(job, policy, now) or _not_due(job, policy, rules, now)
    if late is not None:
        return late
    return _unknown_kind(message, job, rules, now) if policy is None else _waited_too_long(message, job, policy, now)


def put_off(job: Job, policy: KindPolicy | None, due: int, reason: str) -> Disposition:
    """A wait that nobody is charged for; one that would pass the deadline, or the budget, ends now."""
    return _too_late(job, policy, due) or Defer(due, reason)


def unknown_since(message: Message, now: int) -> int:
    """Since when its kind is unknown, by what our copies say; a time that can't be is now."""
    since = message.headers.get(headers.UNKNOWN_SINCE)
    return since if type(since) is int and 0 < since <= now else now


def _too_late(job: Job, policy: KindPolicy | None, when: int) -> DeadLetter | None:
    """Nothing starts at or after its last moment."""
    last = job.deadline if policy is None else last_moment(job, policy.retry, when)
    if last is None or when < last:
        return None
    limit = "before its deadline" if last == job.deadline else "within the time budget of its kind"
    return DeadLetter(Fault(Code.DEADLINE_EXCEEDED, "DeadlineExceeded", f"the job could not start {limit}"))


def _not_due(job: Job, policy: KindPolicy | None, rules: AdmissionRules, now: int) -> Disposition | None:
    if job.due is None or job.due <= now + rules.tick:
        return None
    return put_off(job, policy, job.due, "not_due")


def _waited_too_long(message: Message, job: Job, policy: KindPolicy, now: int) -> DeadLetter | None:
    """Only a job that was never begun: what was begun is bounded by its attempts, its budget and its deadline."""
    begun = job.since is not None or job.attempt > 1 or job.generation
    if not policy.wait_timeout or job.submitted_at is None or begun:
        return None
    could_start = max(job.submitted_at, first_time(message.headers.get(headers.NOT_BEFORE)) or 0)
    if now <= could_start + policy.wait_timeout * 1000:
        return None
    return DeadLetter(
        Fault(
            Code.WAIT_TIMEOUT,
            "WaitTimeout",
            f"the job waited {(now - could_start) / 1000:.1f} s for its start; its kind allows {policy.wait_timeout:g}",
        )
    )


def _unknown_kind(message: Message, job: Job, rules: AdmissionRules, now: int) -> Disposition:
    wait = min(UNKNOWN_KIND_WAIT, unknown_since(message, now) + rules.unknown_kind_grace - now)
    if wait <= 0:
        return DeadLetter(Fault(Code.UNKNOWN_KIND, "UnknownKind", f"no job module here runs the kind '{job.kind}'"))
    return put_off(job, None, now + wait, UNKNOWN_KIND)
