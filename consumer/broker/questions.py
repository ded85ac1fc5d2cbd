"""Asking a broker what it may answer with a complaint, which closes the channel: the next question opens another."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel
from aiormq.exceptions import AMQPChannelError

from consumer.broker.connection import ANSWER, open_channel
from consumer.broker.depth import Depth, depth_of

Answer = TypeVar("Answer")


class Questions:
    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._channel: AbstractChannel | None = None

    async def ask(self, question: Callable[[AbstractChannel], Awaitable[Answer]]) -> Answer | AMQPChannelError:
        """Return what the question returns, or the broker's complaint."""
        if self._channel is None or self._channel.is_closed:
            self._channel = await open_channel(self._connection)
        try:
            return await asyncio.wait_for(question(self._channel), ANSWER)
        except AMQPChannelError as complaint:
            return complaint

    async def depth(self, queue: str) -> Depth | AMQPChannelError:
        return await self.ask(lambda channel: depth_of(channel, queue))
