"""Decide: from an outcome to a disposition. Pure; time and chance are passed in."""

from dataclasses import replace

from consumer.core.disposition import Complete, DeadLetter, Defer, Disposition, Duplicate, Release, Retry
from consumer.core.job import Fault, Job
from consumer.core.outcome import Crashed, Failed, Interrupted, Outcome, Succeeded, TimedOut
from consumer.core.policy import Jitter, RetryPolicy
from consumer.core.ports import Chance
from schemas.codes import Code

WORTH_A_RETRY = frozenset({"builtins.ConnectionError", "builtins.TimeoutError"})
NOT_WORTH_A_RETRY = frozenset(
    {
        "builtins.ValueError",
        "builtins.TypeError",
        "builtins.LookupError",
        "builtins.PermissionError",
        "pydantic_core._pydantic_core.ValidationError",
    }
)
"""Errors that a second try can't mend: the same input meets the same code."""
TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers of a server (RFC 9110, 6585, 8470) to which the same request may get another one later."""
CLIENT_ERRORS = range(400, 500)
CANCELLED = "cancelled"
"""Why a run is interrupted that a person cancelled: the store says so already."""


def last_moment(job: Job, policy: RetryPolicy, now: int) -> int | None:
    """Before which attempts may start, in epoch ms: the job's deadline, or the end of its kind's budget if that is
    first. The budget counts from the first attempt since the job was submitted, or redriven."""
    if not policy.budget:
        return job.deadline
    spent = (now if job.since is None else job.since) + round(policy.budget * 1000)
    return spent if job.deadline is None else min(spent, job.deadline)


def decide(
    outcome: Outcome,
    attempt: int,
    policy: RetryPolicy,
    last: int | None,
    now: int,
    chance: Chance,
    cooled: int | None = None,
) -> Disposition:
    """Say what follows from `outcome` of the `attempt`-th execution. Times are epoch ms: nothing starts at or after
    `last`, and where the kind cools down its jobs come back at `cooled`."""
    match outcome:
        case Succeeded():
            return Complete(outcome)
        case Interrupted(reason):
            return Duplicate(reason) if reason == CANCELLED else Release(reason)
        case Failed(dependency=str()):
            return _when_it_is_up(outcome, cooled, last, now)
        case Failed() if not _worth_a_retry(outcome, policy):
            return DeadLetter(_final(outcome.fault))
        case Failed():
            return _again(outcome.fault, outcome.after, attempt, policy, last, now, chance)
        case TimedOut() | Crashed():
            return _again(outcome.fault, None, attempt, policy, last, now, chance)


def wait_seconds(policy: RetryPolicy, attempt: int, advised: float | None, chance: Chance) -> float:
    """The wait after the `attempt`-th execution: exponential, capped, jittered, at least the advised one."""
    whole = min(policy.cap, policy.base * 2.0 ** min(attempt - 1, 62))
    match policy.jitter:
        case Jitter.EQUAL:
            wait = whole * (0.5 + 0.5 * chance())
        case Jitter.FULL:
            wait = whole * chance()
        case Jitter.NONE:
            wait = whole
    return max(wait, advised or 0.0)


def _again(
    fault: Fault,
    advised: float | None,
    attempt: int,
    policy: RetryPolicy,
    last: int | None,
    now: int,
    chance: Chance,
) -> Disposition:
    if attempt >= policy.max_attempts:
        return DeadLetter(fault)
    due = now + round(wait_seconds(policy, attempt, advised, chance) * 1000)
    return _too_late(fault, due, last) or Retry(attempt + 1, due, fault.code, fault)


def _when_it_is_up(failed: Failed, cooled: int | None, last: int | None, now: int) -> DeadLetter | Defer:
    """Not the job's fault: the attempt isn't charged, whatever its number, and its backoff has no say."""
    due = now + round((failed.after or 0.0) * 1000) if cooled is None else cooled
    return _too_late(failed.fault, due, last) or Defer(due, "dependency_down")


def _too_late(fault: Fault, due: int, last: int | None) -> DeadLetter | None:
    """Waiting for what will not be run any more helps nobody."""
    if last is None or due < last:
        return None
    return DeadLetter(replace(fault, code=Code.DEADLINE_EXCEEDED))


def _worth_a_retry(failed: Failed, policy: RetryPolicy) -> bool:
    """The handler's own word first, then the kind's rules, then what the server said, then ours; of the types of the
    error the most specific one decides."""
    if failed.retryable is not None:
        return failed.retryable
    if failed.fault.code is not Code.ATTEMPTS_EXHAUSTED:
        return False
    said = _by_type(failed.types, policy.retry_on, policy.no_retry_on)
    if said is not None:
        return said
    if failed.http_status in TRANSIENT_STATUSES:
        return True
    if failed.http_status in CLIENT_ERRORS:
        return False
    return _by_type(failed.types, WORTH_A_RETRY, NOT_WORTH_A_RETRY) is not False


def _by_type(types: tuple[str, ...], worth: frozenset[str], not_worth: frozenset[str]) -> bool | None:
    """What the nearest of the types says that either set names, plainly or dotted."""
    for dotted in types:
        names = {dotted, dotted.rpartition(".")[2]}
        if names & worth:
            return True
        if names & not_worth:
            return False
    return None


def _final(fault: Fault) -> Fault:
    """An error that is not worth a retry is a rejection, whoever said so."""
    return replace(fault, code=Code.REJECTED) if fault.code is Code.ATTEMPTS_EXHAUSTED else fault
