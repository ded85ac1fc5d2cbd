"""A daemon in the process of a test: everything that decides is real; broker, database, children and time are not."""

import asyncio
import math
import weakref
from collections.abc import Coroutine, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from config.settings import kinds_in
from consumer.core.admission import AdmissionRules
from consumer.core.burials import BurialRules
from consumer.core.cooling import CoolingRules
from consumer.core.decode import DecodeRules
from consumer.core.job import Message
from consumer.core.parcels import Copier
from consumer.core.policy import Overridden
from consumer.core.rooms import Rules
from consumer.core.row import Status
from consumer.overriding import overrides_of, ratios_of
from consumer.processor import Processor
from consumer.relay import Relay
from consumer.status import describe
from consumer.store.grouped import GroupedStore
from consumer.store.memory import MemoryBackend
from consumer.testing.broker import MemoryBroker, MemoryDelivery, MemoryPublisher
from consumer.testing.clock import VirtualClock
from consumer.testing.diary import DeadLetter, Diary, Published, dead_letter, published
from consumer.testing.handlers import Function, Modules, kinds_of
from consumer.testing.loop import forbid_a_running_loop
from consumer.testing.message import message_of, real_clock
from consumer.testing.outcome import RunOutcome
from consumer.testing.pipeline import Held, Policies, rooms, topology
from consumer.testing.places import Places
from schemas import headers as names

OWNER = "test"
MOST_CHANCE = math.nextafter(1.0, 0.0)
STEPS = 10_000
"""Deliveries and jumps of time after which nobody believes that it will ever be idle."""
T = TypeVar("T")


class MemoryDaemon:
    """Runs handlers, one at a time, in the order of the queue. Use it from plain `def` tests.

    `handlers` are decorated functions; `modules` the names of modules, of which all handlers are taken. `chance`: where
    a wait falls in the range of its jitter, from 0, the shortest, to 1. `settings`: a TOML file, of which `[kinds]`
    counts. `with` closes it; so does its end of life.
    """

    def __init__(
        self,
        *handlers: Function,
        modules: Modules = (),
        chance: float = 0.5,
        settings: str | Path | None = None,
    ) -> None:
        kinds, said = kinds_of(handlers, modules), kinds_in(settings)
        declared = Policies({kind: each.offer.policy for kind, each in kinds.items()})
        luck = partial(min, chance, MOST_CHANCE)
        self._clock = VirtualClock(real_clock())
        self._loop = asyncio.new_event_loop()
        self._close = weakref.finalize(self, self._loop.close)
        self._keys = count(1)
        self._broker = MemoryBroker(self._clock, topology())
        self._backend = MemoryBackend(self._clock)
        self._store = GroupedStore(self._backend)
        self._places = Places(kinds, self._clock, self._loop)
        self._diary = Diary(self._places, self._clock)
        self._publisher = MemoryPublisher(self._broker)
        self._relay = Relay(self._store, self._publisher, self._broker.topology, self._clock, luck)
        around = rooms(
            catalogue=Overridden(declared, overrides_of(said)),
            store=self._store,
            slots=self._places,
            publisher=self._publisher,
            journal=self._diary,
            intake=self._diary,
            cooling=CoolingRules(ratios=ratios_of(said)),
            burials=BurialRules(ratio=0),
            leases=Held(),
            owner=OWNER,
            chance=luck,
        )
        rules = Rules(OWNER, DecodeRules(), AdmissionRules(100, 300_000), lease=60_000, crash_limit=3)
        self._processor = Processor(around, rules, self._clock, luck)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._close()

    @property
    def now(self) -> int:
        """The daemon's time, in epoch milliseconds, as in headers. It begins with the machine's."""
        return self._clock.now

    @property
    def published(self) -> list[Published]:
        """Everything that the daemon published: copies for retries, dead letters, follow-ups."""
        return [published(parcel) for parcel in self._publisher.confirmed]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """What is in the dead-letter queue."""
        return [dead_letter(message, self._broker.topology, self.now) for message in self._broker.dead]

    def publish(
        self,
        kind: str,
        payload: Any,
        *,
        key: str | None = None,
        headers: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        delay: float = 0.0,
    ) -> str:
        """Publish a job as a producer does, and return its key, which is a new one where none is given.

        `payload`: a JSON value or a model, or the body itself as bytes. `deadline` and `delay`: seconds from now.
        """
        key = f"{kind}-{next(self._keys)}" if key is None else key
        account = dict(headers or {})
        if deadline is not None:
            account[names.DEADLINE] = self.now + round(deadline * 1000)
        if delay:
            account[names.NOT_BEFORE] = self.now + round(delay * 1000)
        self._broker.publish(message_of(kind, key, payload, account, self.now))
        return key

    def run_until_idle(self) -> None:
        """Run everything that there is to run, and let the time pass that it waits for."""
        self._run_until(None)

    def advance(self, seconds: float) -> None:
        """Let so much time pass, and run what is due until then; `advance(0)` runs what is due now."""
        until = self.now + round(seconds * 1000)
        self._run_until(until)
        self._clock.now = until

    def status(self, kind: str, key: str) -> dict[str, Any]:
        """What `consumer status --json` would say of a job."""
        row = _at_once(self._store.find(kind, key))
        if row is None:
            raise LookupError(
                f"no job of kind {kind!r} with key {key!r} was begun: was it published, and run? What is refused or "
                "put off before its first run isn't in the store"
            )
        return describe(row)

    def cancel(self, kind: str, key: str) -> bool:
        """As `consumer cancel` does, also while the job runs. False: it has succeeded already."""
        row = _at_once(self._store.cancel(kind, key, "a test"))
        self._places.cancel(kind, key)
        return row.status is Status.CANCELLED

    def runs(self, kind: str | None = None, key: str | None = None) -> list[RunOutcome]:
        """What came of each run of a handler, in order: of all, or of one kind, or of one job."""
        return [run for run in self._diary.runs if kind in (None, run.kind) and key in (None, run.key)]

    def redrive(self, code: str | None = None) -> int:
        """Send dead letters back to work, all or those with a code; return how many."""
        chosen = [letter.message for letter in self.dead_letters if code in (None, letter.code)]
        copier = Copier(self._broker.topology, OWNER)
        for message in chosen:
            self._broker.dead.remove(message)
            self._broker.route(copier.redrive(message))
        return len(chosen)

    def _run_until(self, moment: int | None) -> None:
        forbid_a_running_loop("MemoryDaemon", "make the test a plain def")
        if self._loop.is_closed():
            raise RuntimeError("this MemoryDaemon is closed: its 'with' is over, or the test whose fixture made it")
        for _ in range(STEPS):
            if self._broker.ready:
                self._process(*self._broker.ready.pop(0))
            elif (due := self._next_due()) is not None and (moment is None or due <= moment):
                self._clock.now = max(due, self.now)
                self._broker.mature()
                self._run(self._relay.send_all())
            else:
                return
        raise AssertionError(f"the daemon is not idle after {STEPS} steps: {self._diary.latest}")

    def _next_due(self) -> int | None:
        times = (self._broker.next_due, self._backend.follow_ups.next_at)
        return min((time for time in times if time is not None), default=None)

    def _process(self, message: Message, redelivered: bool) -> None:
        delivery = MemoryDelivery(self._broker, message, redelivered, self.now)
        processing = self._loop.create_task(self._processor.process(delivery))
        try:
            while self._run(self._has_called(processing)):
                self._places.answer()
            processing.result()
        finally:
            processing.cancel()
            self._run(asyncio.wait([processing]))
        self._run(self._relay.send_all())

    async def _has_called(self, processing: asyncio.Task[None]) -> bool:
        either: list[asyncio.Future[Any]] = [processing, self._places.called]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return self._places.called.done()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(coroutine)


def _at_once(asking: Coroutine[Any, Any, T]) -> T:
    """A store in memory never waits, so that it also answers while a handler runs in the loop."""
    try:
        asking.send(None)
    except StopIteration as answered:
        return cast("T", answered.value)
    raise AssertionError("the store in memory waits")
