"""Taking dead letters in hand, one by one; what isn't acked goes back when the connection closes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiormq.abc import AbstractChannel

from consumer.broker.connection import CLIENT_ERRORS, BrokerConfig, connect, is_our_cancellation, open_channel, reason
from consumer.broker.delivery import message_of
from consumer.core.errors import BrokerUnavailable
from consumer.core.job import Message


class DeadLetters:
    """`take` until it says None. Letters that were taken and not acked are in the queue again afterwards."""

    def __init__(self, channel: AbstractChannel, queue: str) -> None:
        self._channel = channel
        self._queue = queue

    async def take(self) -> tuple[int, Message] | None:
        """The next letter and its tag, or None where there is no further one."""
        try:
            got = await self._channel.basic_get(self._queue)
        except CLIENT_ERRORS as error:
            raise self._away(error) from None
        tag = got.delivery_tag
        return None if tag is None else (tag, message_of(got))

    async def ack(self, tag: int) -> None:
        try:
            await self._channel.basic_ack(tag)
        except CLIENT_ERRORS as error:
            raise self._away(error) from None

    def _away(self, error: BaseException) -> BaseException:
        if is_our_cancellation(error):
            return error
        return BrokerUnavailable(f"reading {self._queue} failed: {reason(error)}")


@asynccontextmanager
async def dead_letters(config: BrokerConfig, queue: str) -> AsyncIterator[DeadLetters]:
    connection = await connect(config, "dead letters")
    try:
        channel = await open_channel(connection)
        yield DeadLetters(channel, queue)
        await channel.close()
    finally:
        await connection.close()
