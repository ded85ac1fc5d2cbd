"""Publishing with confirmation, over whichever session is alive."""

import asyncio
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from math import isnan
from typing import Any

from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import DeliveryError
from pamqp import commands
from pamqp.header import ContentHeader

from consumer.broker.connection import CLIENT_ERRORS, is_our_cancellation, reason, reasoned
from consumer.core.errors import PublishFailed
from consumer.core.job import Message
from consumer.core.ports import Parcel
from schemas import headers

PERSISTENT = 2
FRAME = 128 * 1024 - 8
"""What a frame holds, in bytes, where nobody set another size on the broker."""
PublishObserver = Callable[[str, str], None]
"""Called with target and result (confirmed, returned, nacked, timeout, error) of every publish."""


class AmqpPublisher:
    """Lives longer than its channels: a session attaches one and detaches it at its end."""

    def __init__(self, timeout: float, observe: PublishObserver = lambda _target, _result: None) -> None:
        self._timeout = timeout
        self._observe = observe
        self._channel: AbstractChannel | None = None
        self._under_way: dict[object, asyncio.Future[None]] = {}

    def attach(self, channel: AbstractChannel) -> None:
        self._channel = channel

    def detach(self) -> None:
        self._channel = None

    async def publish(self, parcel: Parcel) -> None:
        """Return once the broker has confirmed that a queue took it; raise PublishFailed otherwise.

        After a timeout the fate of the message is unknown: it may land later. Keys absorb that.
        """
        # the client matches returned messages by their message_id, so one id is never under way twice; where there is
        # none, it makes up one
        message_id = parcel.message.message_id or object()
        while message_id in self._under_way:
            await asyncio.shield(self._under_way[message_id])
        self._under_way[message_id] = turn = asyncio.get_running_loop().create_future()
        try:
            await self._confirmed(parcel)
        except PublishFailed as failure:
            self._observe(parcel.target, failure.result)
            raise
        else:
            self._observe(parcel.target, "confirmed")
        finally:
            del self._under_way[message_id]
            turn.set_result(None)

    async def _confirmed(self, parcel: Parcel) -> None:
        if self._channel is None:
            raise PublishFailed("the broker is away", "error")
        try:
            with reasoned():
                answer = await self._channel.basic_publish(
                    parcel.message.body,
                    exchange=parcel.exchange,
                    routing_key=parcel.routing_key,
                    properties=properties_of(parcel.message),
                    mandatory=True,
                    timeout=self._timeout,
                )
        except DeliveryError:
            raise PublishFailed(f"the broker refused a message for {parcel.exchange}", "nacked") from None
        except TimeoutError:
            raise PublishFailed(
                f"no confirmation from exchange {parcel.exchange} within {self._timeout:g} s", "timeout"
            ) from None
        except CLIENT_ERRORS as error:
            if is_our_cancellation(error):
                raise
            raise PublishFailed(f"publishing to {parcel.exchange} failed: {reason(error)}", "error") from None
        if isinstance(answer, DeliveredMessage):
            raise PublishFailed(
                f"no queue takes messages for exchange {parcel.exchange}, routing key {parcel.routing_key}",
                "returned",
            )


def is_writable(message: Message) -> bool:
    """Whether the client can write its headers and properties into a frame: out of a file they may be anything."""
    try:
        return len(ContentHeader(properties=properties_of(message)).marshal()) < FRAME
    except (ValueError, TypeError, OverflowError, OSError, struct.error):
        return False


def properties_of(message: Message) -> commands.Basic.Properties:
    """Persistent, whatever the original was."""
    table = {name: _encodable(value) for name, value in message.headers.items()}
    if not message.message_id:
        table[headers.ANONYMOUS] = True
    return commands.Basic.Properties(
        content_type=message.content_type,
        content_encoding=message.content_encoding,
        headers=table,
        delivery_mode=PERSISTENT,
        priority=message.priority,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        message_id=message.message_id,
        timestamp=None if message.timestamp_ms is None else datetime.fromtimestamp(message.timestamp_ms / 1000, UTC),
        message_type=message.type,
        app_id=message.app_id,
    )


def _encodable(value: Any) -> Any:
    """A foreign header must never be the reason why a copy can't be written: what the client can't write becomes text.

    It reads text that isn't UTF-8 as bytes, and writes only bytearrays. It writes floats in four bytes: those that
    need eight would come out as others, or not at all.
    """
    match value:
        case bool() | str() | bytearray() | None | datetime() | Decimal():
            return value
        case bytes():
            return bytearray(value)
        case float():
            return value if _fits_in_four_bytes(value) else repr(value)
        case int():
            return value if -(2**63) <= value < 2**63 else str(value)
        case dict():
            return {str(name): _encodable(item) for name, item in value.items()}
        case list() | tuple():
            return [_encodable(item) for item in value]
        case _:
            return str(value)


def _fits_in_four_bytes(value: float) -> bool:
    try:
        return isnan(value) or struct.unpack(">f", struct.pack(">f", value))[0] == value
    except OverflowError:
        return False
