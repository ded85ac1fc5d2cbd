"""The message that a producer would send."""

import time
from collections.abc import Mapping
from typing import Any

from consumer.core.job import Message
from consumer.worker.json_text import json_text


def message_of(kind: str, key: str, payload: Any, headers: Mapping[str, Any], now: int) -> Message:
    """`payload`: a JSON value or a model; or the body itself, as bytes. A key may be longer than AMQP's properties."""
    if not (isinstance(kind, str) and isinstance(key, str)):
        raise TypeError(f"kind and key of a job are text, and not {kind!r:.60} and {key!r:.60}")
    body = payload if isinstance(payload, bytes) else _body(payload)
    return Message(body, dict(headers), "application/json", type=kind, message_id=key, timestamp_ms=now)


def _body(payload: Any) -> bytes:
    try:
        return json_text(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"the payload can't be written as JSON ({error}): give what a producer would send, or the body as bytes"
        ) from None


def real_clock() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000
