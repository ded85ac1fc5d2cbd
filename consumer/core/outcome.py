"""What happened to one execution: a closed set of plain values. Nothing here decides what follows."""

from dataclasses import dataclass

from consumer.core.job import Fault
from consumer.core.outbox import FollowUp


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost: epoch milliseconds, seconds, bytes."""

    started_at: int = 0
    finished_at: int = 0
    cpu_seconds: float = 0.0
    peak_memory: int = 0


@dataclass(frozen=True, slots=True)
class Succeeded:
    """`result` is JSON text as the child wrote it; the parent never decodes it."""

    result: bytes
    usage: Usage
    follow_ups: tuple[FollowUp, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler, or the check of its payload or result, failed.

    `retryable` is None where the handler said nothing and the rules of the kind decide; `after` is the wait
    in seconds that it, or the server that it asked, advised; `types` are the dotted names of the error's class and
    its bases, nearest first; `http_status` is there where the error is one of HTTP; `dependency` names what is down.
    """

    fault: Fault
    usage: Usage
    retryable: bool | None = None
    after: float | None = None
    types: tuple[str, ...] = ()
    http_status: int | None = None
    dependency: str | None = None


@dataclass(frozen=True, slots=True)
class TimedOut:
    fault: Fault
    usage: Usage


@dataclass(frozen=True, slots=True)
class Crashed:
    """The child died under this job: a signal, an exit, or memory exhaustion."""

    fault: Fault
    usage: Usage


@dataclass(frozen=True, slots=True)
class Interrupted:
    """We ended the run, or never began it; the job isn't to blame and isn't charged."""

    reason: str


Outcome = Succeeded | Failed | TimedOut | Crashed | Interrupted
