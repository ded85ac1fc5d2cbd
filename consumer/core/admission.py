"""Hop 3, its pure half: whether a job may start now, as far as the job itself can tell."""

from dataclasses import dataclass
from typing import Any

from consumer.core.disposition import DeadLetter, Defer, Disposition
from consumer.core.job import Fault, Job, Message
from consumer.core.policy import KindPolicy
from schemas import headers
from schemas.codes import Code


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
    if job.deadline is not None and now >= job.deadline:
        return DeadLetter(
            Fault(
                Code.DEADLINE_EXCEEDED,
                "DeadlineExceeded",
                "the job's deadline was over before it could start",
            )
        )
    if job.due is not None and job.due > now + rules.tick:
        return Defer(job.due, "not_due")
    if policy is None:
        return _unknown_kind(message, job, rules, now)
    return None


def _unknown_kind(message: Message, job: Job, rules: AdmissionRules, now: int) -> Disposition:
    since = _milliseconds(message.headers.get(headers.FIRST_DEFERRED), now)
    wait = min(rules.unknown_kind_wait, since + rules.unknown_kind_grace - now)
    if wait <= 0:
        return DeadLetter(Fault(Code.UNKNOWN_KIND, "UnknownKind", f"no job module here runs the kind '{job.kind}'"))
    return Defer(now + wait, "unknown_kind")


def _milliseconds(value: Any, default: int) -> int:
    return value if type(value) is int and 0 < value <= default else default
