"""What the processor is given: the rooms around it, each known by its port alone, and the rules it goes by."""

from collections.abc import Hashable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from consumer.core.admission import AdmissionRules
from consumer.core.checkpoint import Checkpoint
from consumer.core.claim import Claim, ClaimRequest
from consumer.core.decode import DecodeRules
from consumer.core.disposition import Disposition, Settlement
from consumer.core.errors import Unavailable
from consumer.core.letters import Letter
from consumer.core.outcome import Outcome
from consumer.core.parcels import Copier
from consumer.core.policy import Catalogue
from consumer.core.ports import Delivery, Publisher, Slots
from consumer.core.row import Change, Ref
from consumer.core.verdict import Verdict


class Turns(Protocol):
    """Deliveries of one key go one after the other in this process, so a second one finds what the first did."""

    def turn(self, key: Hashable) -> AbstractAsyncContextManager[None]: ...


class Leases(Protocol):
    """Keeps the leases of claims alive while they are held."""

    def hold(self, ref: Ref) -> None: ...
    def drop(self, ref: Ref) -> None: ...


class Journal(Protocol):
    """Hears what happened; log lines and metrics are made of it."""

    def settled(self, delivery: Delivery, verdict: Verdict, settlement: Settlement, on_time: bool) -> None:
        """`on_time` is False where the channel was gone, so that the broker delivers it again."""
        ...


class Intake(Protocol):
    """Whether we take in work at all."""

    def trip(self, error: Unavailable) -> None:
        """Something of ours failed: stop taking in deliveries until it is back."""
        ...


class Cooldowns(Protocol):
    """Which kinds are put off because what they depend on is down. Times are epoch ms."""

    def due(self, kind: str, now: int) -> int | None:
        """When a job of the kind should come back, or None where it needn't."""
        ...

    def enter(self, kind: str, now: int) -> int | None:
        """As `due`, for a job that is about to start: it may be one of the few probes."""
        ...

    def heard(self, kind: str, outcome: Outcome, now: int) -> object: ...


class Burials(Protocol):
    """Whether jobs may go on being dead-lettered."""

    def weigh(self, disposition: Disposition, now: int) -> Disposition:
        """What is to be carried out instead; the same one while there is no reason to stop."""
        ...


class Ledger(Protocol):
    """What the pipeline needs of the store."""

    async def claim(self, request: ClaimRequest) -> Claim: ...
    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]: ...
    async def write(self, change: Change) -> bool: ...
    async def bury(self, letter: Letter) -> None: ...


class Checkpoints(Protocol):
    """Is told where a delivery is; a crash can be asked for there."""

    def passed(self, checkpoint: Checkpoint) -> None: ...


@dataclass(frozen=True, slots=True)
class Rules:
    """`lease` in milliseconds; `owner` is unique to this start of this process."""

    owner: str
    decode: DecodeRules
    admission: AdmissionRules
    lease: int
    crash_limit: int


COPIES_AT_ONCE = 100
"""So many copies for the delay queues are under way at most. More would stand in line in the broker's socket, after
their waits were counted: of 5,000 failures at one moment they were late by a second."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """`copying` is where a copy for the delay queues waits for its turn; COPIES_AT_ONCE have one."""

    store: Ledger
    slots: Slots
    catalogue: Catalogue
    publisher: Publisher
    copier: Copier
    copying: AbstractAsyncContextManager[None]
    turns: Turns
    leases: Leases
    journal: Journal
    intake: Intake
    cooldowns: Cooldowns
    burials: Burials
    checkpoints: Checkpoints
