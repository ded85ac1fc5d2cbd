"""How a kind is run and retried: frozen data, declared by the handler, overridable in settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol


class Jitter(StrEnum):
    EQUAL = "equal"
    FULL = "full"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Times in seconds. `budget` is for all attempts and the waits between them, 0 for no limit.

    `retry_on` and `no_retry_on` hold exception type names, plain or dotted.
    """

    max_attempts: int = 5
    base: float = 1.0
    cap: float = 600.0
    jitter: Jitter = Jitter.EQUAL
    budget: float = 0.0
    retry_on: frozenset[str] = field(default_factory=frozenset)
    no_retry_on: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class KindPolicy:
    """`timeout` is the execution timeout in seconds; `wait_timeout`, in seconds too, is how long after its
    submission a job may still start for the first time, 0 for no limit.
    """

    kind: str
    timeout: float = 300.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    wait_timeout: float = 0.0


class Catalogue(Protocol):
    """What the children said they can run."""

    def policy(self, kind: str) -> KindPolicy | None: ...


@dataclass(frozen=True, slots=True)
class Override:
    """What the settings say of a kind instead: fields of its policy, and of its retry policy."""

    timing: Mapping[str, Any]
    retry: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Overridden:
    """A catalogue with the settings' word in it."""

    catalogue: Catalogue
    overrides: Mapping[str, Override]

    def policy(self, kind: str) -> KindPolicy | None:
        declared = self.catalogue.policy(kind)
        said = self.overrides.get(kind)
        if declared is None or said is None:
            return declared
        return replace(declared, **said.timing, retry=replace(declared.retry, **said.retry))
