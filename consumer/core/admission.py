"""Hop 3, its pure half: whether a job may start now, as far as the job itself can tell."""

from dataclasses import dataclass
from typing import Any

from consumer.core.disposition import DeadLetter, Defer, Disposition
from consumer.core.job import Fault, Job, Message
from consumer.core.policy import KindPolicy
from consumer.core.retry import last_moment
from schemas import headers
from schemas.codes import Code

UNKNOWN_KIND = "unknown_kind"


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """Milliseconds. `tick` is how early a copy may come back and still count as due.

    `unknown_kind_grace`: how long a kind may be unknown, since producers can be deployed before us.
    """

    tick: int
    unknown_kind_grace: int
    unknown_kind_wait: int = 5_000


def turned_away(
    message: Message, job: Job, policy: KindPolicy | None, rules: AdmissionRules, now: int
) -> Disposition | None:
    """Return what to do with a job that can't start now, or None where it can."""
    if policy is None:
        return too_late(job, job.deadline, now) or _not_due(job, rules, now) or _unknown_kind(message, job, rules, now)
    last = last_moment(job, policy.retry, now)
    return too_late(job, last, now) or _not_due(job, rules, now) or _waited_too_long(job, policy, now)


def put_off(job: Job, due: int, reason: str) -> Disposition:
    """A wait that nobody is charged for; one that would pass the deadline ends now."""
    return too_late(job, job.deadline, due) or Defer(due, reason)


def too_late(job: Job, last: int | None, when: int) -> DeadLetter | None:
    """Nothing starts at or after `last`."""
    if last is None or when < last:
        return None
    over = "deadline" if last == job.deadline else "time budget of its kind"
    return DeadLetter(
        Fault(Code.DEADLINE_EXCEEDED, "DeadlineExceeded", f"the job's {over} was over before it could start")
    )


def _not_due(job: Job, rules: AdmissionRules, now: int) -> Disposition | None:
    if job.due is None or job.due <= now + rules.tick:
        return None
    return put_off(job, job.due, "not_due")


def _waited_too_long(job: Job, policy: KindPolicy, now: int) -> DeadLetter | None:
    """Only a job that was never begun: what was begun is bounded by its attempts, its budget and its deadline."""
    if not policy.wait_timeout or job.submitted_at is None or job.since is not None or job.generation:
        return None
    could_start = max(job.submitted_at, job.due or 0)
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
    since = _milliseconds(message.headers.get(headers.UNKNOWN_SINCE), now)
    wait = min(rules.unknown_kind_wait, since + rules.unknown_kind_grace - now)
    if wait <= 0:
        return DeadLetter(Fault(Code.UNKNOWN_KIND, "UnknownKind", f"no job module here runs the kind '{job.kind}'"))
    return put_off(job, now + wait, UNKNOWN_KIND)


def _milliseconds(value: Any, default: int) -> int:
    return value if type(value) is int and 0 < value <= default else default
