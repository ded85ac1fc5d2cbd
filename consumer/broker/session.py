"""One life of our two connections: connect → declare → consume. Any doubt ends it; the runner opens the next.

Two connections, so that a publisher that the broker holds back (memory or disk alarm) can't hold back acks.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from aiormq.abc import AbstractChannel, DeliveredMessage
from aiormq.exceptions import AMQPChannelError, ChannelNotFoundEntity
from pamqp import commands

from consumer.broker.acknowledger import Acknowledger
from consumer.broker.connection import (
    ANSWER,
    CLIENT_ERRORS,
    BrokerConfig,
    close_channel,
    connect,
    explained,
    is_undecodable,
    open_channel,
    reason,
    reasoned,
)
from consumer.broker.declare import Mode, apply
from consumer.broker.delivery import AmqpDelivery
from consumer.broker.depth import Depth, depth_of
from consumer.broker.line import CLOSE_TIMEOUT, Line
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.strays import Found, Publish, bring_home
from consumer.core.ports import Clock
from consumer.core.topology import Topology

WATCHDOG = "watchdog"
Receiver = Callable[[AmqpDelivery], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """`reason` is a label of broker_sessions_total, `detail` is for people."""

    reason: str
    detail: str


class Session:
    """Use `open_session`. `ended` resolves once, whatever ends it first; `consumer` is the tag of ours, if any."""

    def __init__(self, consuming: Line, publishing: Line, topology: Topology) -> None:
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._consuming = consuming
        self._publishing = publishing
        self._topology = topology
        self._channel: AbstractChannel | None = None
        self._acknowledger: Acknowledger | None = None
        self.consumer: str | None = None
        for connection in (consuming, publishing):
            connection.close_callbacks.add(self._on_connection_closed)

    async def consume(self, receive: Receiver, prefetch: int, clock: Clock) -> None:
        """Start handing deliveries to `receive`, at most `prefetch` of them unsettled."""
        with explained("consuming failed"):
            channel = self._channel or await self._open_consuming_channel()
            await channel.basic_qos(prefetch_count=prefetch, timeout=ANSWER)
            assert self._acknowledger is not None, "it comes with the channel"
            hand_over = _handing_to(receive, self._acknowledger, clock)
            answer = await channel.basic_consume(self._topology.work_queue, hand_over, timeout=ANSWER)
        self.consumer = answer.consumer_tag

    def publish_with(self, publisher: AmqpPublisher, channel: AbstractChannel) -> None:
        """Lend the publisher a channel for as long as we live."""
        channel.closing.add_done_callback(lambda closing: self._on_channel_closed("publishing", closing))
        publisher.attach(channel)
        self.ended.add_done_callback(lambda _: publisher.detach())

    async def cancel(self) -> None:
        """Stop taking deliveries; those in hand can still be settled."""
        if self._channel is None or self.consumer is None:
            return
        tag, self.consumer = self.consumer, None
        try:
            with reasoned():
                await self._channel.basic_cancel(tag, timeout=CLOSE_TIMEOUT)
        except CLIENT_ERRORS as error:
            self.end("closed", reason(error))

    async def depths(self, queues: Sequence[str]) -> dict[str, Depth | None]:
        """Ask the broker, on a channel of its own since a missing queue closes it. None: the queue is missing."""
        found: dict[str, Depth | None] = {}
        with explained("asking for queue depths failed"):
            channel = await open_channel(self._consuming)
            for queue in queues:
                try:
                    found[queue] = await depth_of(channel, queue)
                except ChannelNotFoundEntity:
                    found[queue] = None
                    channel = await open_channel(self._consuming)
            await close_channel(channel)
        return found

    async def bring_home(self, publish: Publish) -> Found:
        """Give the strays of our queue to `publish`."""
        with explained("looking for strays failed"):
            return await bring_home(self._consuming, self._topology.ladder, self._topology.queue, publish)

    async def blocked(self) -> bool:
        """Whether an alarm on the broker holds back our publishing connection."""
        transport = self._publishing.transport
        if transport is None:
            return False
        try:
            await asyncio.wait_for(transport.ready(), timeout=0.05)
        except TimeoutError:
            return True
        return False

    def end(self, reason: str, detail: str) -> None:
        if not self.ended.done():
            self.ended.set_result(Ended(reason, detail))

    async def close(self) -> None:
        """Close the channel first: its handshake says that the broker has heard every ack. Never raises.

        A broker that did not answer the watchdog would not answer that either.
        """
        self.end("closed", "closed by us")
        if self._acknowledger is not None:
            self._acknowledger.flush()
        if self._channel is not None and self.ended.result().reason != WATCHDOG:
            await close_channel(self._channel)
        await asyncio.gather(self._consuming.hang_up(), self._publishing.hang_up())

    async def _open_consuming_channel(self) -> AbstractChannel:
        channel = await open_channel(self._consuming)
        channel.closing.add_done_callback(lambda closing: self._on_channel_closed("consuming", closing))
        channel.on_consumer_cancel_callbacks.add(self._on_cancelled)
        self._channel = channel
        self._acknowledger = Acknowledger(channel)
        return channel

    def _on_cancelled(self, _: commands.Basic.Cancel) -> None:
        self.end(
            "cancelled",
            f"the broker cancelled our consumer on {self._topology.work_queue}: the queue was deleted or moved, or a "
            "delivery was in hand for longer than the broker's consumer_timeout",
        )

    def _on_channel_closed(self, purpose: str, closing: asyncio.Future[Any]) -> None:
        error = None if closing.cancelled() else closing.exception()
        why = f": {reason(error)}" if isinstance(error, AMQPChannelError) else ""
        self.end("channel_closed", f"the broker closed the {purpose} channel{why}")

    def _on_connection_closed(self, _: object, error: BaseException | None = None) -> None:
        match error:
            case None:
                self.end("closed", "the connection was closed")
            case asyncio.CancelledError():
                self.end("heartbeat", "no heartbeat came from the broker")
            case _ if is_undecodable(error):
                self.end("undecodable", f"the broker sent what can't be decoded: {reason(error)}")
            case _:
                self.end("closed", reason(error))


async def open_session(config: BrokerConfig, topology: Topology, mode: Mode, publisher: AmqpPublisher) -> Session:
    """Connect twice, declare, attach the publisher. Raises BrokerUnavailable or TopologyError."""
    async with AsyncExitStack() as unless_opened:
        consuming = await connect(config, "consuming")
        unless_opened.push_async_callback(consuming.hang_up)
        with explained("the session could not be opened"):
            await apply(consuming, topology, mode)
            publishing = await connect(config, "publishing")
            unless_opened.push_async_callback(publishing.hang_up)
            channel = await open_channel(publishing, confirms=True)
        session = Session(consuming, publishing, topology)
        session.publish_with(publisher, channel)
        unless_opened.pop_all()
    return session


def _handing_to(
    receive: Receiver, acknowledger: Acknowledger, clock: Clock
) -> Callable[[DeliveredMessage], Coroutine[Any, Any, None]]:
    """The client cancels its callbacks when the channel closes, so the callback does nothing but hand over."""

    async def hand_over(delivered: DeliveredMessage) -> None:
        receive(AmqpDelivery(delivered, acknowledger, clock()))

    return hand_over
