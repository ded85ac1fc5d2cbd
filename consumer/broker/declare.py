"""Applies a topology to a broker, or checks it without changing anything."""

import re
from collections.abc import Coroutine
from dataclasses import replace
from enum import StrEnum
from typing import Any

from aio_pika.abc import AbstractConnection
from aiormq.abc import AbstractChannel
from aiormq.exceptions import (
    AMQPChannelError,
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
)

from consumer.broker.connection import ANSWER, close_channel, open_channel, reason
from consumer.core.amqp_rules import differing
from consumer.core.errors import BrokerUnavailable, TopologyError
from consumer.core.facts import Difference
from consumer.core.topology import Binding, Exchange, Queue, Topology

_INEQUIVALENT = re.compile(
    r"inequivalent arg '(?P<argument>[^']+)' for (?P<what>\w+) '(?P<name>[^']+)'.*?: "
    r"received (?P<wanted>.*?) but current is (?P<found>.*)"
)


class Mode(StrEnum):
    DECLARE = "declare"
    CHECK = "check"


async def apply(connection: AbstractConnection, topology: Topology, mode: Mode) -> None:
    """Declare everything, or check that the queues and exchanges exist; raise TopologyError at the first fault."""
    channel = await open_channel(connection)
    passive = mode is Mode.CHECK
    for exchange in topology.exchanges:
        await _step(declare_exchange(channel, exchange, passive=passive), f"exchange '{exchange.name}'", mode)
    for queue in topology.queues:
        await _step(declare_queue(channel, queue, passive=passive), f"queue '{queue.name}'", mode)
    if passive:
        await _compare(channel, topology)
    else:
        for binding in topology.bindings:
            await _step(bind(channel, binding), f"binding {binding.source} → {binding.destination}", mode)
    await close_channel(channel)


async def faults(connection: AbstractConnection, topology: Topology) -> list[str]:
    """Declare what can be declared, and return every fault as a sentence."""
    parts = (
        *(replace(topology, exchanges=(exchange,), queues=(), bindings=()) for exchange in topology.exchanges),
        *(replace(topology, exchanges=(), queues=(queue,), bindings=()) for queue in topology.queues),
    )
    found = [fault for part in parts for fault in await _faults_of(connection, part)]
    return found or await _faults_of(connection, replace(topology, exchanges=(), queues=()))


async def _faults_of(connection: AbstractConnection, part: Topology) -> list[str]:
    """A fault closes its channel, so each part has one of its own."""
    try:
        await apply(connection, part, Mode.DECLARE)
    except TopologyError as fault:
        return [str(fault)]
    return []


async def _compare(channel: AbstractChannel, topology: Topology) -> None:
    """Declare what exists: that changes nothing and fails where an argument differs.

    Without the configure permission the arguments can't be seen, and a user who has only been asked to check
    may well lack it: then existence is all that is checked.
    """
    try:
        for queue in topology.queues:
            what = f"queue '{queue.name}'"
            await declare_queue(channel, queue, passive=False)
        for exchange in topology.exchanges:
            what = f"exchange '{exchange.name}'"
            await declare_exchange(channel, exchange, passive=False)
    except ChannelAccessRefused:
        return
    except ChannelPreconditionFailed as error:
        raise _fault(what, error) from None


async def _step(action: Coroutine[Any, Any, None], what: str, mode: Mode) -> None:
    try:
        await action
    except ChannelNotFoundEntity as error:
        if mode is Mode.CHECK:
            raise TopologyError(
                f"not on the broker: {what}; run 'consumer topology declare' as a user with the configure permission"
            ) from None
        # a queue of which the node that leads it is still booting, or gone
        raise BrokerUnavailable(f"{what} can't be declared now: {reason(error)}") from None
    except ChannelAccessRefused as error:
        way_out = "grant it, or set topology.mode to 'check'"
        if mode is Mode.CHECK:
            way_out = "grant any right to it: newer brokers show nothing of what a user has no right to"
        raise TopologyError(f"no permission for {what}: {reason(error)}; {way_out}") from None
    except AMQPChannelError as error:
        raise _fault(what, error) from None


def _fault(what: str, complaint: AMQPChannelError) -> TopologyError:
    found = difference(what, complaint)
    return TopologyError(f"{what} can't be declared: {reason(complaint)}" if found is None else str(differing(found)))


def difference(what: str, complaint: AMQPChannelError) -> Difference | None:
    """What the broker complains of: one argument at a time. None where it is about something else."""
    match = _INEQUIVALENT.search(str(complaint))
    if match is None:
        return None
    return Difference(what, match["argument"], _value(match["found"]), _value(match["wanted"]))


def _value(text: str) -> str:
    """The broker says «the value '5' of type 'long'» or «none»."""
    quoted = re.search(r"'([^']*)'", text)
    return quoted[1] if quoted else text.strip().strip("'\"")


async def declare_exchange(channel: AbstractChannel, exchange: Exchange, *, passive: bool) -> None:
    await channel.exchange_declare(
        exchange.name,
        exchange_type=exchange.type,
        durable=not passive,
        passive=passive,
        arguments=None if passive else dict(exchange.arguments),
        timeout=ANSWER,
    )


async def declare_queue(channel: AbstractChannel, queue: Queue, *, passive: bool) -> None:
    await channel.queue_declare(
        queue.name,
        durable=not passive,
        passive=passive,
        arguments=None if passive else dict(queue.arguments),
        timeout=ANSWER,
    )


async def bind(channel: AbstractChannel, binding: Binding) -> None:
    if binding.to_exchange:
        await channel.exchange_bind(binding.destination, binding.source, binding.routing_key, timeout=ANSWER)
    else:
        await channel.queue_bind(binding.destination, binding.source, binding.routing_key, timeout=ANSWER)
