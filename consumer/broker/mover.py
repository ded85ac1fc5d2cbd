"""Hands on what routes to queues and what is in them, from one version of a topology to another."""

import asyncio
from collections.abc import Awaitable, Callable

from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import AMQPChannelError, ChannelNotFoundEntity

from consumer.broker.connection import ANSWER, open_channel, reason
from consumer.broker.declare import bind
from consumer.broker.delivery import message_of
from consumer.broker.depth import Depth
from consumer.broker.questions import Questions
from consumer.core.delay import Ladder
from consumer.core.errors import TopologyError
from consumer.core.job import Message
from consumer.core.topology import Binding

IN_HAND = 50
"""Messages at a time."""
QUIET = 5.0
"""Seconds without a message after which somebody else has taken the rest."""
Publish = Callable[[Message], Awaitable[None]]


class Mover:
    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._questions = Questions(connection)

    async def depth(self, queue: str) -> Depth | None:
        """None: there is no such queue."""
        answer = await self._questions.depth(queue)
        if isinstance(answer, Depth):
            return answer
        if isinstance(answer, ChannelNotFoundEntity):
            return None
        raise _refused(f"queue '{queue}' can't be looked at", answer)

    async def ladder(self, named: Ladder) -> Ladder | None:
        """The ladder of that version as it is on the broker, with as many levels as it has there; None without one."""
        levels = 0
        while await self._has_exchange(named.level(levels)):
            levels += 1
        if not levels or not await self._has_exchange(named.out):
            return None
        return Ladder(named.namespace, named.tick, levels, named.version)

    async def _has_exchange(self, name: str) -> bool:
        answer = await self._questions.ask(lambda channel: channel.exchange_declare(name, passive=True))
        if isinstance(answer, AMQPChannelError) and not isinstance(answer, ChannelNotFoundEntity):
            raise _refused(f"exchange '{name}' can't be looked at", answer)
        return not isinstance(answer, AMQPChannelError)

    async def bind(self, binding: Binding) -> None:
        answer = await self._questions.ask(lambda channel: bind(channel, binding))
        if isinstance(answer, AMQPChannelError):
            raise _refused(f"queue '{binding.destination}' can't be bound to '{binding.source}'", answer)

    async def unbind(self, binding: Binding) -> None:
        """A queue or exchange that is gone has no binding left."""
        ends = (binding.destination, binding.source, binding.routing_key)
        answer = await self._questions.ask(lambda channel: channel.queue_unbind(*ends))
        if isinstance(answer, AMQPChannelError) and not isinstance(answer, ChannelNotFoundEntity):
            raise _refused(f"queue '{binding.destination}' can't be unbound from '{binding.source}'", answer)

    async def move(self, queue: str, most: int, publish: Publish) -> int:
        """Take up to `most` messages, each acked only after `publish` returned for it; return how many.

        What isn't acked goes back when the channel closes, so an interruption leaves a message in both queues at worst.
        """
        channel = await open_channel(self._connection)
        arrived = asyncio.Queue[DeliveredMessage]()
        numbers = iter(range(most))
        moved = 0

        async def hand_on() -> None:
            nonlocal moved
            for _ in numbers:
                await _hand_on(channel, await asyncio.wait_for(arrived.get(), QUIET), publish)
                moved += 1

        await channel.basic_qos(prefetch_count=IN_HAND, timeout=ANSWER)
        await channel.basic_consume(queue, arrived.put, timeout=ANSWER)
        done = await asyncio.gather(*(hand_on() for _ in range(IN_HAND)), return_exceptions=True)
        await asyncio.wait_for(channel.close(), ANSWER)
        for failure in done:
            if failure is not None and not isinstance(failure, TimeoutError):
                raise failure
        return moved


async def _hand_on(channel: AbstractChannel, got: DeliveredMessage, publish: Publish) -> None:
    assert got.delivery_tag is not None, "it was consumed"
    await publish(message_of(got))
    await channel.basic_ack(got.delivery_tag)


def _refused(what: str, complaint: AMQPChannelError) -> TopologyError:
    return TopologyError(f"{what}: {reason(complaint)}")
