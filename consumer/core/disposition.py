"""What we do with a delivery: a closed set of values, computed once and carried out once."""

from dataclasses import dataclass
from enum import Enum

from consumer.core.job import Fault
from consumer.core.outcome import Succeeded


@dataclass(frozen=True, slots=True)
class Complete:
    """Commit the result, then ack."""

    outcome: Succeeded


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The effect is there already, or another delivery answers for it: ack."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Confirm a copy that is due at `due` (epoch ms) for `attempt`, record it, then ack."""

    attempt: int
    due: int
    reason: str
    fault: Fault


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Confirm a copy in the dead-letter queue, record it, then ack."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class Defer:
    """Not now, and nobody's fault: confirm an unchanged copy that is due at `due`, then ack."""

    due: int
    reason: str


@dataclass(frozen=True, slots=True)
class Release:
    """Give the delivery back to the broker as it is."""

    reason: str


Disposition = Complete | Duplicate | Retry | DeadLetter | Defer | Release


class Settlement(Enum):
    """The only two things that we ever tell the broker about a delivery."""

    ACK = "ack"
    RELEASE = "nack"
