"""The one row per (kind, key): state, result, dedupe and fence. Times are epoch milliseconds of the store's clock."""

from dataclasses import dataclass, field
from enum import StrEnum

from consumer.core.job import Fault
from consumer.core.outbox import FollowUp

HISTORY_LIMIT = 20


class Status(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Failure:
    """One line of a job's bounded history. `fingerprint` (hex) names the payload that failed."""

    generation: int
    attempt: int
    at: int
    code: str
    error_type: str
    message: str
    owner: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """`token` is the fencing number: it grows with every claim, and a write that carries an older one does nothing.

    `crashes` counts the owners that died while they held the present attempt. `payload` is there only for jobs
    submitted through us. `due_at`: when it may run again. `swept_at`: when the sweeper published it last, since its
    last claim. `progress`: what the present run says of itself, from 0 to 1.
    """

    kind: str
    key: str
    status: Status
    attempt: int = 1
    generation: int = 0
    crashes: int = 0
    token: int = 0
    owner: str | None = None
    lease_until: int | None = None
    fingerprint: bytes = b""
    payload: bytes | None = None
    result: bytes | None = None
    fault: Fault | None = None
    history: tuple[Failure, ...] = field(default_factory=tuple)
    submitted_at: int | None = None
    first_seen_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    due_at: int | None = None
    deadline: int | None = None
    swept_at: int | None = None
    cpu_seconds: float = 0.0
    peak_memory: int = 0
    progress: float | None = None
    progress_note: str = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """A claim that we hold, or held."""

    kind: str
    key: str
    token: int


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a run is, which counts only under the token of its claim."""

    ref: Ref
    fraction: float
    note: str


@dataclass(frozen=True, slots=True)
class Change:
    """A write that carries its token. It applies only while the row is `processing` under that token.

    status     fields that count
    SUCCEEDED  result, usage, follow_ups, and what these inherit: traceparent and deadline
    RETRYING   due_at, fault, usage
    FAILED     fault, usage
    PENDING    due_at: the claim is given back, or put off; the attempt isn't charged
    """

    ref: Ref
    status: Status
    result: bytes | None = None
    fault: Fault | None = None
    due_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    cpu_seconds: float = 0.0
    peak_memory: int = 0
    follow_ups: tuple[FollowUp, ...] = ()
    traceparent: str | None = None
    deadline: int | None = None
