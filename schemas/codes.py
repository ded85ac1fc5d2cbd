"""The stable codes under which a job is refused or given up.

A code is part of the public contract: it is written into dead-letter headers, result rows, log lines and
metric labels. Codes are added, never renamed.
"""

from enum import StrEnum


class Code(StrEnum):
    """Why a message ended in the dead-letter queue."""

    # refused before any claim: the envelope can't be read
    INVALID_JSON = "invalid_json"
    TOO_DEEP = "too_deep"
    NUMBER_OUT_OF_RANGE = "number_out_of_range"
    UNSUPPORTED_CONTENT_TYPE = "unsupported_content_type"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    TOO_LARGE = "too_large"
    MISSING_KIND = "missing_kind"
    UNKNOWN_KIND = "unknown_kind"
    MISSING_KEY = "missing_key"
    # refused with a key: the job can't be run as asked
    INVALID_PAYLOAD = "invalid_payload"
    KEY_CONFLICT = "key_conflict"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    EXPIRED = "expired"
    WAIT_TIMEOUT = "wait_timeout"
    # given up after running
    REJECTED = "rejected"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    EXECUTION_TIMEOUT = "execution_timeout"
    WORKER_CRASHED = "worker_crashed"
    OUT_OF_MEMORY = "out_of_memory"
    RESULT_TOO_LARGE = "result_too_large"
    RESULT_NOT_JSON = "result_not_json"
    CANCELLED = "cancelled"
    # dead-lettered by the broker, not by the job's own doing
    COLLATERAL = "collateral"


MALFORMED = frozenset(
    {
        Code.INVALID_JSON,
        Code.TOO_DEEP,
        Code.NUMBER_OUT_OF_RANGE,
        Code.UNSUPPORTED_CONTENT_TYPE,
        Code.UNSUPPORTED_ENCODING,
        Code.TOO_LARGE,
        Code.MISSING_KIND,
        Code.MISSING_KEY,
        Code.INVALID_PAYLOAD,
    }
)
"""Codes that say something about the producer, not about our health."""
