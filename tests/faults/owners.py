"""One daemon as a model: processor, turns, holding store and lease keeper are real, the rest are twins at gates."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from consumer.core.admission import AdmissionRules
from consumer.core.burials import BurialRules
from consumer.core.claim import Claim, ClaimRequest
from consumer.core.cooling import CoolingRules
from consumer.core.decode import DecodeRules
from consumer.core.errors import PublishFailed, StoreUnavailable, Unavailable
from consumer.core.job import Fault
from consumer.core.letters import Letter
from consumer.core.outcome import Failed, Interrupted, Outcome, Succeeded, Usage
from consumer.core.policy import Jitter, KindPolicy, RetryPolicy
from consumer.core.ports import Clock, Parcel, Work
from consumer.core.rooms import Rules
from consumer.core.row import Change, Ref
from consumer.holding import HoldingStore
from consumer.leases import LeaseKeeper
from consumer.processor import Processor
from consumer.store.memory import MemoryBackend
from consumer.testing.pipeline import Policies, rooms
from schemas.codes import Code
from tests.faults.queues import Broker, Channel, Delivery
from tests.faults.scheduler import FINE, Gates
from tests.support.twins import Notes

T = TypeVar("T")
MAX_ATTEMPTS = 3
LEASE = 6_000
PREFETCH = 4
POLICY = KindPolicy("k", 30.0, RetryPolicy(max_attempts=MAX_ATTEMPTS, base=1.0, jitter=Jitter.NONE))
LOST, UNHEARD, LATE, STOPPED = "lost", "unheard", "late", "stopped"
"""Ways to fail: no effect; an effect, of which we hear an error; an effect after we heard an error; intake stopped."""
IN_FLIGHT = ("publish", "bury", "write", "claim")
"""What may still have its effect when its owner has died."""


@dataclass(frozen=True)
class Execution:
    owner: str
    key: str
    attempt: int
    at: int


@dataclass
class Surroundings:
    """What the owners share. `late`: effects that come when nobody waits for them; `skewed`: a clock was off."""

    gates: Gates
    broker: Broker
    backend: MemoryBackend
    clock: Clock
    crash_limit: int
    script: Callable[[Work], Outcome]
    late: list[Callable[[], object]] = field(default_factory=list)
    skewed: bool = False
    errors: list[BaseException] = field(default_factory=list)
    begun: list[Execution] = field(default_factory=list)
    ended: list[Execution] = field(default_factory=list)


class GatedStore:
    """The memory store at the other end of a network."""

    def __init__(self, owner: str, around: Surroundings) -> None:
        self._owner = owner
        self._around = around

    async def claim(self, request: ClaimRequest) -> Claim:
        return (await self._ask("claim", lambda: self._around.backend.claim([request])))[0]

    async def write(self, change: Change) -> bool:
        return (await self._ask("write", lambda: self._around.backend.write([change])))[0]

    async def bury(self, letter: Letter) -> None:
        await self._ask("bury", lambda: self._around.backend.letters.bury([letter]))

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        return await self._ask("renew", lambda: self._around.backend.renew(refs, lease))

    async def _ask(self, what: str, effect: Callable[[], Awaitable[T]]) -> T:
        word = await self._around.gates.reach(self._owner, what, LOST, LATE)
        if word == LATE:
            self._around.late.append(lambda: asyncio.ensure_future(effect()))
        if word != FINE:
            raise StoreUnavailable(word)
        answer = await effect()
        if await self._around.gates.reach(self._owner, f"{what} answered", UNHEARD) == UNHEARD:
            raise StoreUnavailable(UNHEARD)
        return answer


class GatedPublisher:
    def __init__(self, owner: str, around: Surroundings) -> None:
        self._owner = owner
        self._around = around

    async def publish(self, parcel: Parcel) -> None:
        word = await self._around.gates.reach(self._owner, "publish", LOST, LATE)
        if word == LATE:
            self._around.late.append(lambda: self._around.broker.route(parcel))
        if word != FINE:
            raise PublishFailed(word, "nacked" if word == LOST else "timeout")
        self._around.broker.route(parcel)
        if await self._around.gates.reach(self._owner, "confirm", UNHEARD) == UNHEARD:
            raise PublishFailed(UNHEARD, "timeout")


class GatedSlots:
    def __init__(self, owner: str, around: Surroundings) -> None:
        self._owner = owner
        self._around = around
        self.taken = 0

    async def take(self, kind: str) -> "GatedSlot | None":
        if await self._around.gates.reach(self._owner, "take", STOPPED) == STOPPED:
            return None
        self.taken += 1
        return GatedSlot(self)

    async def run(self, work: Work) -> Outcome:
        if await self._around.gates.reach(self._owner, f"begin {work.job.key}", STOPPED) == STOPPED:
            return Interrupted("withdrawn")
        self._around.begun.append(self._execution(work))
        if await self._around.gates.reach(self._owner, f"run {work.job.key} {work.attempt}", STOPPED) == STOPPED:
            return Interrupted("drain deadline")
        self._around.ended.append(self._execution(work))
        return self._around.script(work)

    def _execution(self, work: Work) -> Execution:
        return Execution(self._owner, work.job.key, work.attempt, self._around.clock())


class GatedSlot:
    def __init__(self, slots: GatedSlots) -> None:
        self._slots = slots
        self._is_free = False

    async def run(self, work: Work) -> Outcome:
        return await self._slots.run(work)

    def free(self) -> None:
        if not self._is_free:
            self._is_free = True
            self._slots.taken -= 1


class Owner:
    """One start of one daemon. `trouble` is what stopped its intake."""

    def __init__(self, name: str, around: Surroundings, clock: Clock) -> None:
        self.name = name
        self.trouble: Unavailable | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self.slots = GatedSlots(name, around)
        self.notes = Notes()
        self._around = around
        self.reconnect()
        store = GatedStore(name, around)
        self.leases = LeaseKeeper(store, LEASE)  # type: ignore[arg-type] # it only renews
        here = rooms(
            catalogue=Policies({"k": POLICY}),
            store=HoldingStore(store, self.trip, lambda: 0.5),  # type: ignore[arg-type] # likewise
            slots=self.slots,
            publisher=GatedPublisher(name, around),
            journal=self.notes,
            intake=self,
            cooling=CoolingRules(),
            burials=BurialRules(ratio=0),
            leases=self.leases,
            owner=name,
            chance=lambda: 0.5,
        )
        rules = Rules(name, DecodeRules(), AdmissionRules(100, 60_000), LEASE, around.crash_limit)
        self._processor = Processor(here, rules, clock, lambda: 0.5)
        self._keeping = asyncio.ensure_future(self.leases.keep())

    def trip(self, error: Unavailable) -> None:
        self.trouble = error

    def reconnect(self) -> None:
        self.channel = Channel(self.name, self._around.gates)

    @property
    def takes_in(self) -> bool:
        return self.trouble is None and len(self.channel.unsettled) < PREFETCH

    @property
    def lost_its_publisher(self) -> bool:
        return isinstance(self.trouble, PublishFailed)

    def receive(self, delivery: Delivery) -> None:
        task = asyncio.ensure_future(self._processor.process(delivery))
        self.tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._around.errors.append(error)


def succeeded(work: Work) -> Outcome:
    return Succeeded(f'"{work.job.key} {work.attempt}"'.encode(), Usage())


def failed(code: Code, *, retryable: bool) -> Outcome:
    return Failed(Fault(code, "app.Odd", "no luck"), Usage(), retryable=retryable)


def down() -> Outcome:
    fault = Fault(Code.ATTEMPTS_EXHAUSTED, "consumer.DependencyDown", "partner-api is down")
    return Failed(fault, Usage(), after=0.7, dependency="partner-api")
