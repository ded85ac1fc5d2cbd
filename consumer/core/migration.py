"""From one version of a topology to another, as data: what to bind, what to unbind, what to move.

The new queues are bound before the old ones are unbound. In between a message goes to both, and its key absorbs that.
The other way round there would be a moment when a message has nowhere to go: returned to a producer that looks,
lost by one that doesn't.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from consumer.core.delay import Ladder
from consumer.core.job import Message
from consumer.core.parcels import BROKER_KEYS
from consumer.core.ports import Parcel
from consumer.core.topology import Binding, Topology, arrival, fed

COUNTED = ("x-delivery-count", "x-acquired-count")
"""What the broker notes of each delivery; a copy begins anew."""


@dataclass(frozen=True, slots=True)
class Move:
    source: str
    destination: str
    exchange: str
    routing_key: str
    drops: tuple[str, ...]
    """Beginnings of the headers that a copy doesn't take along."""

    def parcel(self, message: Message) -> Parcel:
        kept = {name: value for name, value in message.headers.items() if not name.startswith(self.drops)}
        copy = replace(message, headers=kept, expiration=None, user_id=None)
        return Parcel(self.exchange, self.routing_key, copy, "migrate")


@dataclass(frozen=True, slots=True)
class Migration:
    """`ladders` are those of all other versions on the broker: whatever waits there must find the new queue."""

    old: Topology
    new: Topology
    ladders: Sequence[Ladder]

    @property
    def binds(self) -> tuple[Binding, ...]:
        """Those of the new topology itself are declared with it."""
        return tuple(arrival(ladder, self.new.queue, self.new.work_queue) for ladder in self.ladders)

    @property
    def unbinds(self) -> tuple[Binding, ...]:
        arrivals = (arrival(ladder, self.old.queue, self.old.work_queue) for ladder in (self.new.ladder, *self.ladders))
        return (*fed(self.old), *arrivals)

    @property
    def moves(self) -> tuple[Move, Move]:
        """What the broker wrote of a dead letter may be all that says why it died; of work it only misleads."""
        work, dead = fed(self.new)
        return (
            Move(self.old.work_queue, self.new.work_queue, work.source, work.routing_key, BROKER_KEYS),
            Move(self.old.dead_queue, self.new.dead_queue, dead.source, dead.routing_key, COUNTED),
        )
