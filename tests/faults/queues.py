"""A broker as a model: a work queue that delivers again, the delay ladder as due times, and a dead-letter queue."""

from collections.abc import Callable
from dataclasses import dataclass, field

from consumer.core.delay import Ladder
from consumer.core.disposition import Settlement
from consumer.core.job import Message
from consumer.core.ports import Parcel
from consumer.core.topology import build
from tests.faults.scheduler import Gates

TOPOLOGY = build("jobs", "default", Ladder("jobs"), 1_000_000)


@dataclass(eq=False)
class Delivery:
    """The processor's port. What it settles is on the wire until the broker reads it, or the channel is lost."""

    message: Message
    channel: "Channel"
    redelivered: bool
    received_at: int
    settled: list[Settlement] = field(default_factory=list)

    async def settle(self, settlement: Settlement) -> bool:
        await self.channel.gates.reach(self.channel.owner, f"settle {settlement.value}")
        self.settled.append(settlement)
        if not self.channel.alive:
            return False
        self.channel.wire.append((self, settlement))
        return True


@dataclass(eq=False)
class Channel:
    owner: str
    gates: Gates
    alive: bool = True
    unsettled: list[Delivery] = field(default_factory=list)
    wire: list[tuple[Delivery, Settlement]] = field(default_factory=list)


class Broker:
    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.ready: list[tuple[Message, bool]] = []
        self.delayed: list[tuple[int, Message]] = []
        self.dead: list[Message] = []
        self.deliveries: list[Delivery] = []

    def publish(self, message: Message) -> None:
        self.ready.append((message, False))

    def route(self, parcel: Parcel) -> None:
        """A copy lands where its exchange and routing key say."""
        if parcel.exchange == TOPOLOGY.dead_exchange:
            self.dead.append(parcel.message)
            return
        *bits, queue = parcel.routing_key.split(".")
        assert queue == TOPOLOGY.queue
        self.delayed.append((self._clock() + int("".join(bits), 2) * TOPOLOGY.ladder.tick, parcel.message))

    def mature(self) -> None:
        """Move what is due to the work queue."""
        now = self._clock()
        self.ready += [(message, False) for due, message in self.delayed if due <= now]
        self.delayed = [(due, message) for due, message in self.delayed if due > now]

    def deliver(self, channel: Channel, index: int) -> Delivery:
        message, redelivered = self.ready.pop(index)
        delivery = Delivery(message, channel, redelivered, self._clock())
        channel.unsettled.append(delivery)
        self.deliveries.append(delivery)
        return delivery

    def read(self, channel: Channel) -> None:
        """Hear all that was settled on a channel."""
        for delivery, settlement in channel.wire:
            channel.unsettled.remove(delivery)  # settling twice would raise here
            if settlement is Settlement.RELEASE:
                self.ready.insert(0, (delivery.message, True))
        channel.wire.clear()

    def lose(self, channel: Channel) -> None:
        """The channel is gone: what the broker didn't hear of is delivered again."""
        channel.alive = False
        self.ready = [(delivery.message, True) for delivery in channel.unsettled] + self.ready
        channel.unsettled.clear()
        channel.wire.clear()

    @property
    def empty(self) -> bool:
        return not (self.ready or self.delayed)
