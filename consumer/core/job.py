"""The nouns that travel through the pipeline."""

from dataclasses import dataclass, field
from typing import Any

from schemas.codes import Code


@dataclass(frozen=True, slots=True)
class Message:
    """What was on the wire, whatever it holds. Headers and properties are the producer's: trust nothing."""

    body: bytes
    headers: dict[str, Any] = field(default_factory=dict)
    content_type: str | None = None
    content_encoding: str | None = None
    type: str | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    app_id: str | None = None
    user_id: str | None = None
    priority: int | None = None
    timestamp_ms: int | None = None
    expiration: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A decoded request. Times are epoch milliseconds; `payload` points into `body` (RFC 6901, "" = all of it).

    `since`: when its first attempt began, where there was one.
    """

    kind: str
    key: str
    body: bytes
    payload: str = ""
    attempt: int = 1
    generation: int = 0
    fingerprint: bytes = b""
    submitted_at: int | None = None
    deadline: int | None = None
    due: int | None = None
    since: int | None = None
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message, or a job, can't be run. `detail` is for people and never quotes a value from the payload."""

    code: Code
    detail: str
    kind: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure as plain data, bounded in size, free of payload values that we know of."""

    code: Code
    error_type: str
    message: str
    traceback: str = ""
