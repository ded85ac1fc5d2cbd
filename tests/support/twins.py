"""In-memory twins of the rooms around the pipeline, whose failures a test decides."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from consumer.core.admission import AdmissionRules
from consumer.core.burials import BurialRules
from consumer.core.claim import Claim, ClaimRequest
from consumer.core.cooldown import Cooldown
from consumer.core.cooling import CoolingRules
from consumer.core.decode import DecodeRules
from consumer.core.disposition import Settlement
from consumer.core.errors import PublishFailed, StoreRefused, StoreUnavailable, Unavailable
from consumer.core.job import Message
from consumer.core.letters import Letter
from consumer.core.outbox import Outgoing
from consumer.core.outcome import Outcome, Succeeded, Usage
from consumer.core.policy import Jitter, KindPolicy, RetryPolicy
from consumer.core.ports import Delivery, Parcel, Work
from consumer.core.rooms import Rules
from consumer.core.row import Change, Mark, Ref, Row, Status
from consumer.core.verdict import Verdict
from consumer.processor import Processor
from consumer.store.grouped import GroupedStore
from consumer.store.letters import GroupedLetters
from consumer.store.memory import MemoryBackend
from consumer.testing.clock import VirtualClock
from consumer.testing.pipeline import Held, Policies, rooms

START = 1_700_000_000_000
Runner = Callable[[Work], Outcome]


@dataclass
class TestDelivery:
    """A delivery whose channel may be gone."""

    __test__ = False
    message: Message
    redelivered: bool = False
    received_at: int = START
    channel_gone: bool = False
    settled: list[Settlement] = field(default_factory=list)

    async def settle(self, settlement: Settlement) -> bool:
        self.settled.append(settlement)
        return not self.channel_gone


@dataclass
class TestStore:
    """The memory store, away for the next calls of the operations named in `away`.

    It refuses keys and results that are `unfit`, whatever else goes on.
    """

    __test__ = False
    inner: GroupedStore
    away: list[str] = field(default_factory=list)
    unfit: tuple[str | bytes, ...] = ()

    async def claim(self, request: ClaimRequest) -> Claim:
        self._check("claim")
        self._check_fit(request.key)
        return await self.inner.claim(request)

    async def write(self, change: Change) -> bool:
        self._check("write")
        self._check_fit(change.result)
        return await self.inner.write(change)

    @property
    def letters(self) -> GroupedLetters:
        return self.inner.letters

    async def bury(self, letter: Letter) -> None:
        self._check("bury")
        await self.inner.bury(letter)

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        self._check("renew")
        return await self.inner.renew(refs, lease)

    async def find(self, kind: str, key: str) -> Row | None:
        return await self.inner.find(kind, key)

    async def submit(self, row: Row) -> Row:
        return await self.inner.submit(row)

    async def stuck(self, grace: int) -> Mapping[Status, int]:
        self._check("stuck")
        return await self.inner.stuck(grace)

    async def overdue(self, kinds: Collection[str], grace: int, limit: int) -> Sequence[Row]:
        return await self.inner.overdue(kinds, grace, limit)

    async def swept(self, refs: Sequence[Ref]) -> None:
        await self.inner.swept(refs)

    async def prune(self, age: int, limit: int) -> int:
        return await self.inner.prune(age, limit)

    async def cancel(self, kind: str, key: str, by: str) -> Row:
        return await self.inner.cancel(kind, key, by)

    async def cancelled(self, refs: Sequence[Ref]) -> frozenset[Ref]:
        self._check("cancelled")
        return await self.inner.cancelled(refs)

    async def progress(self, marks: Sequence[Mark]) -> None:
        self._check("progress")
        await self.inner.progress(marks)

    async def outbox(self, limit: int, lease_ms: int) -> Sequence[Outgoing]:
        self._check("outbox")
        return await self.inner.outbox(limit, lease_ms)

    async def sent(self, ids: Sequence[int]) -> None:
        self._check("sent")
        await self.inner.sent(ids)

    async def unsent(self) -> int:
        return await self.inner.unsent()

    async def cool(self, cooldown: Cooldown) -> None:
        self._check("cool")
        await self.inner.cool(cooldown)

    async def warm(self, kind: str) -> None:
        await self.inner.warm(kind)

    async def cooldowns(self) -> Sequence[Cooldown]:
        self._check("cooldowns")
        return await self.inner.cooldowns()

    async def probe(self) -> None:
        self._check("probe")

    async def close(self) -> None:
        await self.inner.close()

    def _check_fit(self, data: str | bytes | None) -> None:
        if data in self.unfit:
            raise StoreRefused("the store can't hold this data")

    def _check(self, operation: str) -> None:
        if operation in self.away:
            self.away.remove(operation)
            raise StoreUnavailable(f"{operation}: the store is away")


async def nothing() -> None:
    pass


@dataclass
class TestSlots:
    """Places without end; `run` says what becomes of each work, `meanwhile` is what happens during it.

    `stopped`: intake is paused.
    """

    __test__ = False
    run: Runner
    stopped: bool = False
    meanwhile: Callable[[], Awaitable[object]] = nothing
    executed: list[Work] = field(default_factory=list)
    taken: int = 0

    async def take(self, kind: str) -> "TestSlot | None":
        if self.stopped:
            return None
        self.taken += 1
        return TestSlot(self)


@dataclass
class TestSlot:
    __test__ = False
    slots: TestSlots
    freed: bool = False

    async def run(self, work: Work) -> Outcome:
        self.slots.executed.append(work)
        await self.slots.meanwhile()
        return self.slots.run(work)

    def free(self) -> None:
        if not self.freed:
            self.freed = True
            self.slots.taken -= 1


@dataclass
class TestPublisher:
    """Confirms everything, but fails the next publishes with the results in `failing`."""

    __test__ = False
    failing: list[str] = field(default_factory=list)
    confirmed: list[Parcel] = field(default_factory=list)
    _answers: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._answers.set()

    @contextmanager
    def held(self) -> Iterator[None]:
        """It takes what comes, and answers afterwards."""
        self._answers.clear()
        yield
        self._answers.set()

    async def publish(self, parcel: Parcel) -> None:
        if self.failing:
            raise PublishFailed("the broker is away", self.failing.pop(0))
        self.confirmed.append(parcel)
        await self._answers.wait()


class Notes:
    """What the journal and the intake breaker were told."""

    def __init__(self) -> None:
        self.verdicts: list[tuple[Verdict, Settlement, bool]] = []
        self.trips: list[Unavailable] = []

    def settled(self, _: Delivery, verdict: Verdict, settlement: Settlement, on_time: bool) -> None:
        self.verdicts.append((verdict, settlement, on_time))

    def trip(self, error: Unavailable) -> None:
        self.trips.append(error)


def succeed(_: Work) -> Outcome:
    return Succeeded(b'{"ok": true}', Usage(START, START + 5, 0.001, 1))


class World:
    """A processor in the middle of its twins."""

    def __init__(self, run: Runner = succeed, owner: str = "us", store: GroupedStore | None = None) -> None:
        self.time = VirtualClock(START)
        self.store = TestStore(store or GroupedStore(MemoryBackend(self.time)))
        self.slots = TestSlots(run)
        self.publisher = TestPublisher()
        self.held = Held()
        self.notes = Notes()
        policy = KindPolicy("k", 30.0, RetryPolicy(max_attempts=3, base=1.0, jitter=Jitter.NONE))
        around = rooms(
            catalogue=Policies({"k": policy}),
            store=self.store,
            slots=self.slots,
            publisher=self.publisher,
            journal=self.notes,
            intake=self.notes,
            cooling=CoolingRules(),
            burials=BurialRules(),
            leases=self.held,
            owner=owner,
            chance=lambda: 0.5,
        )
        rules = Rules(owner, DecodeRules(), AdmissionRules(100, 60_000), lease=60_000, crash_limit=3)
        self.processor = Processor(around, rules, self.time, Random(0).random)

    async def deliver(self, message: Message, *, channel_gone: bool = False) -> TestDelivery:
        delivery = TestDelivery(message, received_at=self.time(), channel_gone=channel_gone)
        await self.processor.process(delivery)
        return delivery

    async def row(self, key: str = "a") -> Row:
        row = await self.store.find("k", key)
        assert row is not None
        return row


def message(key: str | None = "a", body: bytes = b'{"n": 1}', kind: str | None = "k") -> Message:
    return Message(body, content_type="application/json", type=kind, message_id=key)
