"""How a kind is run and retried: frozen data, declared by the handler, overridable in settings."""

from dataclasses import dataclass, field
from enum import StrEnum


class Jitter(StrEnum):
    EQUAL = "equal"
    FULL = "full"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits in seconds. `retry_on` and `no_retry_on` hold exception type names, plain or dotted."""

    max_attempts: int = 5
    base: float = 1.0
    cap: float = 600.0
    jitter: Jitter = Jitter.EQUAL
    retry_on: frozenset[str] = field(default_factory=frozenset)
    no_retry_on: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class KindPolicy:
    """`timeout` is the execution timeout in seconds."""

    kind: str
    timeout: float = 300.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
