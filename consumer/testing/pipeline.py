"""Rooms for the real processor that need no server."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from consumer.checkpoints import Unarmed
from consumer.core.burials import BurialRules, DeadLetterBreaker
from consumer.core.cooling import Cooling, CoolingRules
from consumer.core.delay import Ladder
from consumer.core.parcels import Copier
from consumer.core.policy import Catalogue, KindPolicy
from consumer.core.ports import Chance, Publisher, Slots
from consumer.core.rooms import COPIES_AT_ONCE, Intake, Journal, Leases, Ledger, Rooms
from consumer.core.row import Ref
from consumer.core.topology import Topology, build
from consumer.turns import KeyedTurns

DELIVERY_LIMIT = 100


def topology() -> Topology:
    """That of a daemon with default settings."""
    return build("jobs", "default", Ladder("jobs"), DELIVERY_LIMIT)


@dataclass(frozen=True, slots=True)
class Policies:
    """A catalogue."""

    known: Mapping[str, KindPolicy]

    def policy(self, kind: str) -> KindPolicy | None:
        return self.known.get(kind)


@dataclass
class Held:
    """Which claims are held now. Nobody renews them: their time is that of the test."""

    refs: set[Ref] = field(default_factory=set)

    def hold(self, ref: Ref) -> None:
        self.refs.add(ref)

    def drop(self, ref: Ref) -> None:
        self.refs.discard(ref)


def rooms(
    *,
    catalogue: Catalogue,
    store: Ledger,
    slots: Slots,
    publisher: Publisher,
    journal: Journal,
    intake: Intake,
    cooling: CoolingRules,
    burials: BurialRules,
    leases: Leases,
    owner: str,
    chance: Chance,
) -> Rooms:
    return Rooms(
        store=store,
        slots=slots,
        catalogue=catalogue,
        publisher=publisher,
        copier=Copier(topology(), owner),
        copying=asyncio.Semaphore(COPIES_AT_ONCE),
        turns=KeyedTurns(),
        leases=leases,
        journal=journal,
        intake=intake,
        cooldowns=Cooling(cooling, chance),
        burials=DeadLetterBreaker(burials),
        checkpoints=Unarmed(),
    )
