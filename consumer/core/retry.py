"""Decide: from an outcome to a disposition. Pure; time and chance are passed in."""

from dataclasses import replace

from consumer.core.disposition import Complete, DeadLetter, Disposition, Release, Retry
from consumer.core.job import Fault
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


def decide(
    outcome: Outcome, attempt: int, policy: RetryPolicy, deadline: int | None, now: int, chance: Chance
) -> Disposition:
    """Say what follows from `outcome` of the `attempt`-th execution. `deadline` and `now` are epoch ms."""
    match outcome:
        case Succeeded():
            return Complete(outcome)
        case Interrupted(reason):
            return Release(reason)
        case Failed() if not _worth_a_retry(outcome, policy):
            return DeadLetter(_final(outcome.fault))
        case Failed():
            return _again(outcome.fault, outcome.after, attempt, policy, deadline, now, chance)
        case TimedOut() | Crashed():
            return _again(outcome.fault, None, attempt, policy, deadline, now, chance)


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
    deadline: int | None,
    now: int,
    chance: Chance,
) -> Disposition:
    if attempt >= policy.max_attempts:
        return DeadLetter(fault)
    due = now + round(wait_seconds(policy, attempt, advised, chance) * 1000)
    if deadline is not None and due > deadline:
        return DeadLetter(replace(fault, code=Code.DEADLINE_EXCEEDED))
    return Retry(attempt + 1, due, fault.code, fault)


def _worth_a_retry(failed: Failed, policy: RetryPolicy) -> bool:
    """The handler's own word first, then the kind's rules, then ours; the most specific type decides."""
    if failed.retryable is not None:
        return failed.retryable
    if failed.fault.code is not Code.ATTEMPTS_EXHAUSTED:
        return False
    for worth, names in (
        (True, policy.retry_on),
        (False, policy.no_retry_on),
    ):
        if any(_named(dotted, names) for dotted in failed.types):
            return worth
    for dotted in failed.types:
        if dotted in WORTH_A_RETRY:
            return True
        if dotted in NOT_WORTH_A_RETRY:
            return False
    return True


def _named(dotted: str, names: frozenset[str]) -> bool:
    return dotted in names or dotted.rpartition(".")[2] in names


def _final(fault: Fault) -> Fault:
    """An error that is not worth a retry is a rejection, whoever said so."""
    return replace(fault, code=Code.REJECTED) if fault.code is Code.ATTEMPTS_EXHAUSTED else fault
