"""The section `[kinds]` of the settings as values: what it says of kinds instead of their handlers."""

from collections.abc import Mapping

from config.sections import Kind
from consumer.core.policy import Jitter, Override


def overrides_of(kinds: Mapping[str, Kind]) -> dict[str, Override]:
    return {kind: _override(said) for kind, said in kinds.items()}


def ratios_of(kinds: Mapping[str, Kind]) -> dict[str, float]:
    """From which share of failures on a kind cools down."""
    return {kind: said.failure_ratio for kind, said in kinds.items() if said.failure_ratio is not None}


def _override(said: Kind) -> Override:
    timing = {"timeout": said.timeout_seconds, "wait_timeout": said.wait_timeout_seconds}
    retry = {
        "max_attempts": said.max_attempts,
        "base": said.backoff_seconds,
        "cap": said.backoff_cap_seconds,
        "jitter": None if said.jitter is None else Jitter(said.jitter),
        "budget": said.budget_seconds,
        "retry_on": None if said.retry_on is None else frozenset(said.retry_on),
        "no_retry_on": None if said.no_retry_on is None else frozenset(said.no_retry_on),
    }
    return Override(*({name: value for name, value in given.items() if value is not None} for given in (timing, retry)))
