"""What every model of a message turns into: bytes and properties, named as AMQP 0-9-1 names them."""

import json
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, StringConstraints

PERSISTENT = 2
MAX_KIND = 200
MAX_KEY = 500
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*$"
TRACEPARENT = r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"


class Amqp(NamedTuple):
    """`properties` are the keywords of pika's BasicProperties and of most other clients, headers included."""

    body: bytes
    properties: dict[str, Any]


def to_json(value: Any) -> bytes:
    """Raises ValueError for what JSON can't say: NaN, Infinity, half of a surrogate pair."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def to_milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _plain(payload: Any) -> Any:
    """A payload may be given as a model of schemas.payloads."""
    return payload.model_dump(mode="json") if hasattr(payload, "model_dump") else payload


def _writable(payload: Any) -> Any:
    to_json(payload)
    return payload


Kind = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KIND, pattern=PRINTABLE)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY, pattern=PRINTABLE)]
Traceparent = Annotated[str, StringConstraints(pattern=TRACEPARENT)]
Priority = Annotated[int, Field(ge=0, le=255)]
Milliseconds = Annotated[int, Field(ge=0, le=253_402_300_799_999, description="Milliseconds since 1970, UTC")]
Payload = Annotated[JsonValue, BeforeValidator(_plain), AfterValidator(_writable)]
