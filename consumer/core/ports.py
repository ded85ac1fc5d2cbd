"""What the pipeline needs of the rooms around it. Each port belongs to its user, the processor."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from consumer.core.claim import Claim, ClaimRequest
from consumer.core.cooldown import Cooldown
from consumer.core.disposition import Settlement
from consumer.core.job import Job, Message
from consumer.core.letter_index import LetterIndex
from consumer.core.letters import Letter
from consumer.core.outbox import Outgoing
from consumer.core.outcome import Outcome
from consumer.core.row import Change, Mark, Ref, Row, Status

Clock = Callable[[], int]
"""Epoch milliseconds."""
Chance = Callable[[], float]
"""A number in [0, 1)."""


class Delivery(Protocol):
    """One message handed to us on one channel, to be settled once on that channel."""

    @property
    def message(self) -> Message: ...
    @property
    def redelivered(self) -> bool: ...
    @property
    def received_at(self) -> int: ...

    async def settle(self, settlement: Settlement) -> bool:
        """Tell the broker. False where the channel is gone, so that the broker will deliver it again."""
        ...


class Rows(Protocol):
    """What a store does outside of the pipeline. `Store` says what its methods raise."""

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        """Extend the leases of our claims by `lease` ms from now; return those that are no longer ours."""
        ...

    async def find(self, kind: str, key: str) -> Row | None: ...

    async def cancel(self, kind: str, key: str, by: str) -> Row:
        """End a job for good wherever it is, one never seen too; return its row. One that has succeeded stays so."""
        ...

    async def cancelled(self, refs: Sequence[Ref]) -> frozenset[Ref]:
        """Those of our claims whose jobs were cancelled meanwhile."""
        ...

    async def progress(self, marks: Sequence[Mark]) -> None:
        """Note how far our runs are; a mark whose claim is over says nothing."""
        ...

    async def submit(self, row: Row) -> Row:
        """Insert a pending row, or return the one that is there. `first_seen_at` is the store's clock."""
        ...

    async def stuck(self, grace: int) -> Mapping[Status, int]:
        """Count the rows that have waited for a delivery for longer than `grace` ms, up to some thousands."""
        ...

    async def overdue(self, kinds: Collection[str], grace: int, limit: int) -> Sequence[Row]:
        """Those among them that are to be published again, and can be, since their payload is here."""
        ...

    async def swept(self, refs: Sequence[Ref]) -> None:
        """Note that they were published, so that they aren't overdue for a while."""
        ...

    async def prune(self, age: int, limit: int) -> int:
        """Forget at most `limit` jobs that are done since more than `age` ms; return how many it were."""
        ...

    async def outbox(self, limit: int, lease_ms: int) -> Sequence[Outgoing]:
        """Take follow-ups of our queue for sending, the oldest first.

        Nobody else gets them for `lease_ms`, and for twice as long each time that they weren't `sent` meanwhile.
        """
        ...

    async def sent(self, ids: Sequence[int]) -> None:
        """Forget follow-ups: they are on the broker."""
        ...

    async def unsent(self) -> int:
        """Count those of our queue that should be there by now, up to some thousands."""
        ...

    async def cool(self, cooldown: Cooldown) -> None:
        """Let a kind wait, here and in every process with this store; of two cooldowns the longer one holds."""
        ...

    async def warm(self, kind: str) -> None:
        """What the kind needs is up again."""
        ...

    async def cooldowns(self) -> Sequence[Cooldown]:
        """Those of kinds that nobody has seen up again, also where their time is over: they are being probed."""
        ...

    async def probe(self) -> None:
        """Prove that the store can be written to now."""
        ...

    async def close(self) -> None: ...


class Store(Rows, Protocol):
    """Raises StoreUnavailable from every method where the store can't answer.

    Raises StoreRefused where it can't hold what it was given: a name, or the result in a write; nothing else.
    """

    @property
    def letters(self) -> LetterIndex:
        """The index of dead letters, for commands."""
        ...

    async def claim(self, request: ClaimRequest) -> Claim: ...

    async def write(self, change: Change) -> bool:
        """Apply a change under its token. True where the row now says so (also when it said so before)."""
        ...

    async def bury(self, letter: Letter) -> None:
        """Note a letter whose copy is confirmed in the dead-letter queue."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """What a child needs to run one attempt. `alone`: no other job may run in this pod meanwhile."""

    job: Job
    attempt: int
    timeout: float
    alone: bool = False


class Slot(Protocol):
    """A place at a child, its look-ahead place included."""

    async def run(self, work: Work) -> Outcome:
        """Execute; never raises; frees the slot when the run is over."""
        ...

    def free(self) -> None:
        """Give the place back unused; does nothing once it is free."""
        ...


class Slots(Protocol):
    async def take(self, kind: str) -> Slot | None:
        """Wait for a place where that kind runs. None when intake was stopped: the delivery goes back unstarted."""
        ...


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message that we publish, and where to."""

    exchange: str
    routing_key: str
    message: Message
    target: str


class Publisher(Protocol):
    async def publish(self, parcel: Parcel) -> None:
        """Return once the broker has confirmed that a queue took it; raise PublishFailed otherwise."""
        ...
