"""The broker in memory with channels that may be lost, so that it delivers again."""

from collections.abc import Callable
from dataclasses import dataclass, field

from consumer.core.disposition import Settlement
from consumer.core.job import Message
from consumer.testing.broker import MemoryBroker
from consumer.testing.pipeline import topology
from tests.faults.scheduler import Gates

TOPOLOGY = topology()


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


class Broker(MemoryBroker):
    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock, TOPOLOGY)
        self.deliveries: list[Delivery] = []

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
