"""Strays: copies that came out of the ladder while their work queue, or its binding, was not there."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from aio_pika.abc import AbstractConnection
from aiormq.abc import DeliveredMessage

from consumer.broker.connection import close_channel, open_channel
from consumer.broker.deadletters import PREFETCH, DeadLetters
from consumer.broker.delivery import message_of
from consumer.core.delay import Ladder
from consumer.core.job import Message

AT_ONCE = 50
"""Strays that wait for their confirmations together."""
Publish = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Found:
    """How many went `home`, and how many are `left`, by the queue that they are for.

    `failure` says why the last of ours that is left could not be published.
    """

    home: int
    left: Mapping[str, int]
    failure: str | None = None


async def bring_home(connection: AbstractConnection, ladder: Ladder, queue: str, publish: Publish) -> Found:
    """Ack each stray of `queue` after `publish` returned for it; all others go back, as dead letters do after a look.

    An interruption leaves a copy in both places at worst.
    """
    channel = await open_channel(connection)
    look = _Look(DeadLetters(channel, ladder.stray, PREFETCH), ladder, queue, publish)
    try:
        return await look.all()
    finally:
        await close_channel(channel)


class _Look:
    def __init__(self, strays: DeadLetters, ladder: Ladder, queue: str, publish: Publish) -> None:
        self._strays = strays
        self._ladder = ladder
        self._queue = queue
        self._publish = publish
        self._home = 0
        self._left = Counter[str]()
        self._failure: str | None = None

    async def all(self) -> Found:
        ours: list[DeliveredMessage] = []
        while (arrived := await self._strays.arrival()) is not None:
            queue = self._ladder.destination(arrived.routing_key or "")
            if queue == self._queue:
                ours.append(arrived)
            else:
                self._leave(arrived, queue)
            if len(ours) == AT_ONCE:
                await self._send(ours)
                ours.clear()
        await self._send(ours)
        await self._strays.close()
        return Found(self._home, dict(self._left), self._failure)

    async def _send(self, ours: Sequence[DeliveredMessage]) -> None:
        answers = await asyncio.gather(*(self._publish(message_of(one)) for one in ours), return_exceptions=True)
        for one, failure in zip(ours, answers, strict=True):
            if failure is None:
                self._strays.ack(one.delivery_tag or 0)
                self._home += 1
            elif isinstance(failure, Exception):
                self._leave(one, self._queue)
                self._failure = str(failure)
            else:
                raise failure

    def _leave(self, stray: DeliveredMessage, queue: str) -> None:
        self._strays.hold(stray.delivery_tag or 0)
        self._left[queue] += 1
