"""How much there is in a queue, and for whom."""

from dataclasses import dataclass

from aiormq.abc import AbstractChannel

from consumer.broker.connection import ANSWER


@dataclass(frozen=True, slots=True)
class Depth:
    """`ready` leaves out what is handed out and not yet acked."""

    ready: int
    consumers: int


async def depth_of(channel: AbstractChannel, queue: str) -> Depth:
    """Changes nothing. A queue that isn't there closes the channel, and raises ChannelNotFoundEntity."""
    answer = await channel.queue_declare(queue, passive=True, timeout=ANSWER)
    return Depth(answer.message_count or 0, answer.consumer_count or 0)
