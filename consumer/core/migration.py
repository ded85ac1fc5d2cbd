"""From one version of a topology to another, as data: what to bind, what to unbind, what to move.

The new queues are bound before the old ones are unbound. In between a message goes to both, and its key absorbs that.
The other way round there would be a moment when a message has nowhere to go: returned to a producer that looks,
lost by one that doesn't.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from consumer.core.deadletters import COUNTED
from consumer.core.delay import Ladder
from consumer.core.job import Message
from consumer.core.letters import letter_of
from consumer.core.parcels import kept_headers
from consumer.core.ports import Parcel
from consumer.core.topology import Binding, Topology, arrival, fed
from schemas import headers

Headers = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Move:
    source: str
    destination: str
    exchange: str
    routing_key: str
    headers_of: Callable[[Message], Headers]

    def parcel(self, message: Message) -> Parcel:
        copy = replace(message, headers=self.headers_of(message), expiration=None, user_id=None)
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
        work, dead = fed(self.new)
        return (
            Move(self.old.work_queue, self.new.work_queue, work.source, work.routing_key, kept_headers),
            Move(self.old.dead_queue, self.new.dead_queue, dead.source, dead.routing_key, self._of_a_letter),
        )

    def _of_a_letter(self, message: Message) -> Headers:
        """What the broker wrote may be all that says why it died; but it names the old queue.

        So the letter says code and id itself from now on, and is the same letter to the index.
        """
        letter = letter_of(message, self.old, (None, None), 0)
        said = {headers.DEAD_ID: letter.id} | ({headers.CODE: letter.code} if letter.code else {})
        return {name: value for name, value in message.headers.items() if name not in COUNTED} | said
