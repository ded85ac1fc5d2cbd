"""From the client's message to our values, and the one-time settlement that is tied to its channel."""

from datetime import datetime
from typing import Any

from aiormq.abc import DeliveredMessage

from consumer.broker.acknowledger import Acknowledger
from consumer.core.disposition import Settlement
from consumer.core.job import Message
from schemas import headers


class AmqpDelivery:
    """One message handed to us on one channel; its tag dies with that channel."""

    __slots__ = ("_acknowledger", "_settled", "_tag", "message", "received_at", "redelivered")

    def __init__(self, delivered: DeliveredMessage, acknowledger: Acknowledger, received_at: int) -> None:
        self.message = message_of(delivered)
        self.redelivered = bool(delivered.redelivered)
        self.received_at = received_at
        self._tag = delivered.delivery_tag or 0
        self._acknowledger = acknowledger
        self._settled = False

    async def settle(self, settlement: Settlement) -> bool:
        """Ack or give back; False where the channel is gone. Settling twice would close the channel for all."""
        if self._settled:
            raise RuntimeError("a delivery is settled once")
        self._settled = True
        if settlement is Settlement.ACK:
            return self._acknowledger.ack(self._tag)
        return self._acknowledger.release(self._tag)


def message_of(delivered: DeliveredMessage) -> Message:
    """Translate properties as they are; decode judges them."""
    properties = delivered.header.properties
    table = dict(properties.headers or {})
    made_up_id = table.pop(headers.ANONYMOUS, None) is True
    return Message(
        body=delivered.body,
        headers=table,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        type=properties.message_type,
        message_id=None if made_up_id else properties.message_id,
        correlation_id=properties.correlation_id,
        reply_to=properties.reply_to,
        app_id=properties.app_id,
        user_id=properties.user_id,
        priority=properties.priority,
        timestamp_ms=_epoch_ms(properties.timestamp),
        expiration=properties.expiration,
    )


def _epoch_ms(timestamp: Any) -> int | None:
    return int(timestamp.timestamp() * 1000) if isinstance(timestamp, datetime) else None
