"""A broker in memory: a work queue, the delay ladder as due times, and a dead-letter queue."""

from collections.abc import Callable
from dataclasses import dataclass, field

from consumer.core.disposition import Settlement
from consumer.core.job import Message
from consumer.core.ports import Parcel
from consumer.core.topology import Topology


class MemoryBroker:
    """`ready`: messages of the work queue, and whether they were delivered before; `delayed`: with the time when they
    come back; `elsewhere`: those for other queues of the namespace.
    """

    def __init__(self, clock: Callable[[], int], topology: Topology) -> None:
        self._clock = clock
        self.topology = topology
        self.ready: list[tuple[Message, bool]] = []
        self.delayed: list[tuple[int, Message]] = []
        self.dead: list[Message] = []
        self.elsewhere: list[Parcel] = []

    def publish(self, message: Message) -> None:
        """As a producer does."""
        self.ready.append((message, False))

    def route(self, parcel: Parcel) -> None:
        """A copy lands where its exchange and routing key say."""
        if parcel.exchange == self.topology.dead_exchange:
            self.dead.append(parcel.message)
        elif parcel.exchange != self.topology.namespace:
            self._delay(parcel)
        elif parcel.routing_key == self.topology.queue:
            self.publish(parcel.message)
        else:
            self.elsewhere.append(parcel)

    def mature(self) -> None:
        """Move what is due to the work queue, in the order of the times."""
        now = self._clock()
        due = sorted((pair for pair in self.delayed if pair[0] <= now), key=lambda pair: pair[0])
        self.ready += [(message, False) for _, message in due]
        self.delayed = [pair for pair in self.delayed if pair[0] > now]

    @property
    def next_due(self) -> int | None:
        return min((due for due, _ in self.delayed), default=None)

    @property
    def empty(self) -> bool:
        return not (self.ready or self.delayed)

    def _delay(self, parcel: Parcel) -> None:
        *bits, queue = parcel.routing_key.split(".")
        assert queue == self.topology.queue, "only our own queue is behind the ladder"
        self.delayed.append((self._clock() + int("".join(bits), 2) * self.topology.ladder.tick, parcel.message))


@dataclass
class MemoryPublisher:
    """Confirms everything."""

    broker: MemoryBroker
    confirmed: list[Parcel] = field(default_factory=list)

    async def publish(self, parcel: Parcel) -> None:
        self.broker.route(parcel)
        self.confirmed.append(parcel)


@dataclass(frozen=True, slots=True)
class MemoryDelivery:
    """On a channel that is never gone."""

    broker: MemoryBroker
    message: Message
    redelivered: bool
    received_at: int

    async def settle(self, settlement: Settlement) -> bool:
        if settlement is Settlement.RELEASE:
            self.broker.ready.insert(0, (self.message, True))
        return True
