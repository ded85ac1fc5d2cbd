"""Looks at a broker over AMQP, and changes nothing: every question is one that the broker refuses or has answered
before it does anything.

A right is tried with a request that is wrong in another way. The broker looks at the right first, so it complains of
the right where that is lacking, and else of what is wrong: a message whose expiration is no number, a consumer whose
priority is none. Unbinding what was never bound does nothing.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiormq.abc import AbstractChannel
from aiormq.exceptions import (
    AMQPChannelError,
    ChannelAccessRefused,
    ChannelNotFoundEntity,
)
from pamqp import commands

from consumer.broker.connection import explained, reason
from consumer.broker.declare import declare_exchange, declare_queue, difference
from consumer.broker.depth import Depth
from consumer.broker.line import Line
from consumer.broker.questions import Questions
from consumer.core.facts import Difference, MissingRight, Right, Seen
from consumer.core.topology import Binding, Exchange, Queue, Topology

NEVER_BOUND = "consumer-looks-whether-it-may"
REFUSED = re.compile(r"access to (?P<what>(?:queue|exchange) '[^']*')")
Question = Callable[[AbstractChannel], Awaitable[Any]]


async def look(connection: Line, topology: Topology, older: Sequence[Topology], *, declaring: bool) -> Seen:
    """`older` are earlier versions by their names. Raise BrokerUnavailable where the broker doesn't answer."""
    with explained("looking at the broker failed"):
        return await _Look(connection, topology).all(older, declaring)


class _Look:
    def __init__(self, connection: Line, topology: Topology) -> None:
        self._connection = connection
        self._questions = Questions(connection)
        self._topology = topology
        self._missing: list[str] = []
        self._differences: list[Difference] = []
        self._missing_rights: list[MissingRight] = []

    async def all(self, older: Sequence[Topology], declaring: bool) -> Seen:
        left = await self._filled([name for old in older for name in (old.work_queue, old.dead_queue)])
        strays = await self._filled([version.ladder.stray for version in (self._topology, *older)])
        for exchange in self._topology.exchanges:
            await self._exchange(exchange)
        for queue in self._topology.queues:
            await self._queue(queue)
        if declaring:
            for binding in self._topology.bindings:
                await self._may_bind(binding)
        for name in (self._topology.work_queue, self._topology.dead_queue, self._topology.ladder.stray):
            await self._may_read(name)
        held_back = await self._may_not_publish_now()
        properties = self._properties()
        return Seen(
            product=str(properties.get("product", "")),
            version=str(properties.get("version", "")),
            capabilities=frozenset(n for n, able in properties.get("capabilities", {}).items() if able),
            missing=tuple(self._missing),
            differences=tuple(self._differences),
            missing_rights=tuple(dict.fromkeys(self._missing_rights)),
            held_back=held_back,
            left=tuple(left),
            strays=tuple(strays),
        )

    def _properties(self) -> dict[str, Any]:
        return getattr(getattr(self._connection.transport, "connection", None), "server_properties", None) or {}

    async def _ask(self, question: Question) -> AMQPChannelError | None:
        """The broker's complaint; None where it had none."""
        answer = await self._questions.ask(question)
        return answer if isinstance(answer, AMQPChannelError) else None

    async def _filled(self, queues: Sequence[str]) -> list[tuple[str, int]]:
        """Those with messages, and how many. None where a queue is not there, or shows nothing to our user."""
        found: list[tuple[str, int]] = []
        for queue in queues:
            answer = await self._questions.depth(queue)
            if isinstance(answer, Depth) and answer.ready:
                found.append((queue, answer.ready))
        return found

    async def _exchange(self, exchange: Exchange) -> None:
        what = f"exchange '{exchange.name}'"
        if await self._is_there(what, lambda channel: declare_exchange(channel, exchange, passive=True)):
            await self._compare(what, lambda channel: declare_exchange(channel, exchange, passive=False))

    async def _queue(self, queue: Queue) -> None:
        what = f"queue '{queue.name}'"
        if await self._is_there(what, lambda channel: declare_queue(channel, queue, passive=True)):
            await self._compare(what, lambda channel: declare_queue(channel, queue, passive=False))

    async def _is_there(self, what: str, question: Question) -> bool:
        """Newer brokers show nothing to a user who has no right at all to it."""
        complaint = await self._ask(question)
        if isinstance(complaint, ChannelNotFoundEntity):
            self._missing.append(what)
        else:
            self._judge(what, complaint)
        return complaint is None

    async def _compare(self, what: str, question: Question) -> None:
        """Declare what exists: that changes nothing, and fails where it is different."""
        self._judge(what, await self._ask(question))

    def _judge(self, what: str, complaint: AMQPChannelError | None) -> None:
        if isinstance(complaint, ChannelAccessRefused):
            self._note(Right.CONFIGURE, what, complaint)
        elif complaint is not None:
            whole = Difference(what, "the whole of it", reason(complaint), "as we declare it")
            self._differences.append(difference(what, complaint) or whole)

    async def _may_bind(self, binding: Binding) -> None:
        ends = (binding.destination, binding.source, NEVER_BOUND)
        if binding.to_exchange:
            complaint = await self._ask(lambda channel: channel.exchange_unbind(*ends))
        else:
            complaint = await self._ask(lambda channel: channel.queue_unbind(*ends))
        refused = REFUSED.search(str(complaint))
        if isinstance(complaint, ChannelAccessRefused) and refused:
            source = f"exchange '{binding.source}'"
            self._note(Right.READ if refused["what"] == source else Right.WRITE, refused["what"], complaint)

    async def _may_read(self, queue: str) -> None:
        async def consume(channel: AbstractChannel) -> None:
            await channel.basic_consume(queue, _ignore, arguments={"x-priority": "none"})

        self._note(Right.READ, f"queue '{queue}'", await self._ask(consume))

    async def _may_not_publish_now(self) -> bool:
        """Try to publish wherever we do; True where an alarm on the broker keeps it from reading on."""
        waits = ((1 << k) * self._topology.ladder.tick for k in range(self._topology.ladder.levels))
        routes = [
            (self._topology.namespace, self._topology.queue),
            (self._topology.dead_exchange, self._topology.queue),
            *(self._topology.ladder.route(wait, self._topology.queue) for wait in waits),
        ]
        try:
            for exchange, routing_key in routes:
                complaint = await self._ask(lambda channel, e=exchange, k=routing_key: _publish(channel, e, k))  # type: ignore[misc]
                self._note(Right.WRITE, f"exchange '{exchange}'", complaint)
        except TimeoutError:
            return True
        return False

    def _note(self, right: Right, what: str, complaint: AMQPChannelError | None) -> None:
        if isinstance(complaint, ChannelAccessRefused):
            self._missing_rights.append(MissingRight(right, what))


async def _publish(channel: AbstractChannel, exchange: str, routing_key: str) -> None:
    """The broker never routes this message: it closes the channel for it."""
    wrong = commands.Basic.Properties(expiration="never")
    await channel.basic_publish(b"", exchange=exchange, routing_key=routing_key, properties=wrong)
    await asyncio.shield(channel.closing)


async def _ignore(_: object) -> None:
    """Nothing is ever delivered to a consumer that the broker refused."""
