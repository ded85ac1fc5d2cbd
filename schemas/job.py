"""A job in the plain form: what a producer publishes."""

from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from schemas import headers
from schemas.amqp import (
    PERSISTENT,
    Amqp,
    Key,
    Kind,
    Milliseconds,
    Payload,
    Priority,
    Traceparent,
    to_json,
    to_milliseconds,
)

SHORT_TEXT = 255
"""Bytes of text that an AMQP property can hold."""


class JobHeaders(BaseModel):
    """The headers that a producer may set. Others are carried along and ignored."""

    model_config = ConfigDict(extra="allow", validate_by_name=True)

    submitted_at: Milliseconds | None = Field(None, alias=headers.SUBMITTED_AT)
    deadline: Milliseconds | None = Field(
        None, alias=headers.DEADLINE, description="No attempt and no retry starts after it"
    )
    not_before: Milliseconds | None = Field(None, alias=headers.NOT_BEFORE, description="It doesn't start earlier")
    idempotency_key: Key | None = Field(
        None, alias=headers.IDEMPOTENCY_KEY, description="The key, where message_id is taken; it wins"
    )
    traceparent: Traceparent | None = Field(None, alias=headers.TRACEPARENT)


class JobMessage(BaseModel):
    """`key` names the business operation (order 42, capture), not the user and not the try."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    key: Key
    payload: Payload
    submitted_at: AwareDatetime | None = None
    deadline: AwareDatetime | None = None
    not_before: AwareDatetime | None = None
    priority: Priority | None = None
    traceparent: Traceparent | None = None

    def to_amqp(self) -> Amqp:
        """A body and properties to publish to the exchange of the namespace, routing key = the queue's name.

        A key that is too long for a property (255 bytes) travels in a header.
        """
        message_id = self.key if len(self.key.encode()) <= SHORT_TEXT else None
        told = {
            headers.SUBMITTED_AT: self.submitted_at and to_milliseconds(self.submitted_at),
            headers.DEADLINE: self.deadline and to_milliseconds(self.deadline),
            headers.NOT_BEFORE: self.not_before and to_milliseconds(self.not_before),
            headers.IDEMPOTENCY_KEY: None if message_id else self.key,
            headers.TRACEPARENT: self.traceparent,
        }
        properties: dict[str, Any] = {
            "type": self.kind,
            "message_id": message_id,
            "content_type": "application/json",
            "delivery_mode": PERSISTENT,
            "priority": self.priority,
            "headers": {name: value for name, value in told.items() if value is not None},
        }
        return Amqp(to_json(self.payload), {k: v for k, v in properties.items() if v is not None})
