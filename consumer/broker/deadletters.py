"""The dead-letter queue in hand: letters come in its order, are acked one by one, and all others go back in order.

The queue of strays is looked through in the same way.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import ChannelNotFoundEntity

from consumer.broker.acknowledger import Acknowledger
from consumer.broker.connection import (
    ANSWER,
    BrokerConfig,
    connect,
    explained,
    open_channel,
    reason,
)
from consumer.broker.delivery import message_of
from consumer.broker.depth import Depth, depth_of
from consumer.core.errors import BrokerUnavailable, ConsumerError, TopologyError
from consumer.core.job import Message

PREFETCH = 200
"""Letters that are under way to us at a time; those that we hold don't count."""
IDLE = 0.3
"""Seconds without a letter, after which the broker is asked whether there is one."""

RETURNED_TOGETHER = 32
"""A quorum queue keeps the order of so many letters that come back at a time: beyond that it hashes them."""
GIVEN_BACK = 8 * RETURNED_TOGETHER
"""Of so many at a time we hear that they arrived: with more under way, the broker's channel would sort them anew."""
LOOKS, BETWEEN_LOOKS = 400, 0.005
"""How often, and how many seconds apart, we look whether letters have arrived, here or in the queue."""


class DeadLetters:
    """`take` letters; then `ack` or `hold` each. A letter that is held costs us a number.

    A consumer whose prefetch is used up by held letters gets no more, and a quorum queue can't raise it: so the next
    consumer takes its place. Each has an unbroken run of the queue's letters, and gives it back as a whole: of several
    consumers that give back at once, a quorum queue would mix the letters.
    """

    def __init__(self, channel: AbstractChannel, queue: str, prefetch: int) -> None:
        self._channel = channel
        self._queue = queue
        self._prefetch = prefetch
        self._acknowledger = Acknowledger(channel)
        self._arrived: asyncio.Queue[DeliveredMessage | None] = asyncio.Queue()
        self._runs: list[set[int]] = []
        self._consumer: str | None = None
        self._held = 0
        self._stopped = False
        channel.closing.add_done_callback(lambda _: self._arrived.put_nowait(None))

    async def take(self) -> tuple[int, Message] | None:
        """The next letter and its tag; None where there is no further one, or after `stop`."""
        arrived = await self.arrival()
        return None if arrived is None else (arrived.delivery_tag or 0, message_of(arrived))

    async def arrival(self) -> DeliveredMessage | None:
        """As `take`, with what only the delivery says."""
        while not self._stopped:
            if self._consumer is None or self._held > self._prefetch // 2:
                await self._next_consumer()
            try:
                async with asyncio.timeout(IDLE):
                    arrived = await self._arrived.get()
            except TimeoutError:
                if (await self.depth()).ready == 0 and self._arrived.empty():
                    return None
                continue
            if self._channel.is_closed:
                raise BrokerUnavailable(f"the broker closed the channel to {self._queue}: {self._why_closed()}")
            if arrived is not None:
                return arrived
        return None

    def stop(self) -> None:
        """Let `take` say that there is none."""
        self._stopped = True
        self._arrived.put_nowait(None)

    def hold(self, _tag: int) -> None:
        """Not this one: keep it until the end, so that it is not delivered to us again."""
        self._held += 1

    def ack(self, tag: int) -> None:
        if not self._acknowledger.ack(tag):
            raise BrokerUnavailable(f"the broker closed the channel to {self._queue}: {self._why_closed()}")
        for run in self._runs:
            run.discard(tag)

    async def depth(self) -> Depth:
        with self._asking():
            return await depth_of(self._channel, self._queue)

    async def close(self) -> None:
        """Give back what is in hand, in its order, and return when the broker has heard all of it."""
        await self._cancel()
        with self._asking():
            for run in filter(None, self._runs):
                tags = sorted(run)
                for start in range(0, len(tags), GIVEN_BACK):
                    await self._give_back(tags[start : start + GIVEN_BACK])
            await asyncio.wait_for(self._channel.close(), ANSWER)

    async def _give_back(self, tags: list[int]) -> None:
        back = (await self.depth()).ready + len(tags)
        for first in range(0, len(tags), RETURNED_TOGETHER):
            part = tags[first : first + RETURNED_TOGETHER]
            await self._channel.basic_nack(part[-1], multiple=True, requeue=True)
        await self._seen(lambda ready: ready >= back)

    async def _seen(self, enough: Callable[[int], bool]) -> None:
        """Wait until so many letters are ready, unless somebody else may take them at once."""
        for _ in range(LOOKS):
            if enough((await self.depth()).ready):
                return
            await asyncio.sleep(BETWEEN_LOOKS)

    async def _next_consumer(self) -> None:
        await self._cancel()
        self._runs.append(run := set())
        self._held = 0

        async def hand_over(delivered: DeliveredMessage) -> None:
            run.add(delivered.delivery_tag or 0)
            self._arrived.put_nowait(delivered)

        with self._asking():
            await self._channel.basic_qos(prefetch_count=self._prefetch, timeout=ANSWER)
            answer = await self._channel.basic_consume(self._queue, hand_over, timeout=ANSWER)
        self._consumer = answer.consumer_tag

    async def _cancel(self) -> None:
        """What comes for a consumer that is gone, the broker takes back, ahead of all that we hold: wait for it."""
        if self._consumer is not None:
            self._acknowledger.flush()
            await self._seen(lambda ready: not ready or len(self._runs[-1]) >= self._prefetch)
            with self._asking():
                await self._channel.basic_cancel(self._consumer, timeout=ANSWER)

    def _why_closed(self) -> str:
        closing = self._channel.closing
        error = closing.exception() if closing.done() and not closing.cancelled() else None
        return reason(error) if error else "no reason given"

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Let what the client raises leave in words."""
        with explained(f"reading {self._queue} failed"):
            try:
                yield
            except ChannelNotFoundEntity:
                raise TopologyError(f"there is no queue {self._queue}: 'consumer topology declare' makes it") from None


@asynccontextmanager
async def dead_letters(config: BrokerConfig, queue: str, prefetch: int = PREFETCH) -> AsyncIterator[DeadLetters]:
    """What is in hand goes back in order at the end, also at a bad one; if only the connection ends, in any order."""
    connection = await connect(config, "dead letters")
    try:
        with explained(f"reading {queue} failed"):
            channel = await open_channel(connection)
        letters = DeadLetters(channel, queue, prefetch)
        try:
            yield letters
        except BaseException:
            with suppress(ConsumerError):
                await letters.close()
            raise
        await letters.close()
    finally:
        await connection.hang_up()
