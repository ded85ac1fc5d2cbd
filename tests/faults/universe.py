"""Owners, a broker and a store, in which everything happens in any order; and what must hold when it is quiet again."""

from collections.abc import Callable
from functools import partial

from consumer.core.outcome import Outcome
from consumer.core.ports import Work
from consumer.core.row import Row, Status
from consumer.store.memory import MemoryBackend
from schemas import headers
from schemas.codes import Code
from tests.faults.owners import IN_FLIGHT, MAX_ATTEMPTS, Owner, Surroundings, down, failed, succeeded
from tests.faults.queues import TOPOLOGY, Broker
from tests.faults.scheduler import FINE, Choices, Gates, VirtualLoop, turns
from tests.support.twins import START, message

OWNERS = 2
KEYS = 5
NEVER = 1_000_000
PATIENCE = 1_000
"""Rounds after which a quiet universe must have come to its end."""
DOWN = -2
SCRIPTS = (0, 1, 2, MAX_ATTEMPTS, -1, DOWN)
"""How often a job fails before it succeeds; -1: it is rejected at once; DOWN: what it needs is down at first."""
DOWN_FOR = 2
"""Runs of a job that find it down."""
TICK = TOPOLOGY.ladder.tick


def script_of(key: str) -> int:
    return int(key.partition(":")[2])


def run(work: Work, runs: int) -> Outcome:
    """What comes of the run that is the `runs`-th of its job, whoever began the others."""
    failures = script_of(work.job.key)
    if failures == DOWN:
        return down() if runs <= DOWN_FOR else succeeded(work)
    if failures < 0:
        return failed(Code.REJECTED, retryable=False)
    if work.attempt <= failures:
        return failed(Code.ATTEMPTS_EXHAUSTED, retryable=True)
    return succeeded(work)


class Universe:
    def __init__(self, choices: Choices, loop: VirtualLoop) -> None:
        self.told: list[str] = []
        self._choices = choices
        self._loop = loop
        self._now = START
        self._skew: dict[str, int] = {}
        self._names = iter(range(1_000_000))
        self._graves: list[Owner] = []  # their coroutines must not be collected: that would run their clean-up
        self.keys: list[str] = []
        self.broker = Broker(lambda: self._now)
        self.backend = WatchedBackend(lambda: self._now + self._skew.get("store", 0))
        self.crash_limit = choices.of((NEVER, NEVER, 3))
        self._limit = choices.of((1, 2, KEYS))
        self.around = Surroundings(
            Gates(self.told.append), self.broker, self.backend, lambda: self._now, self.crash_limit, self._run
        )
        self.owners = [self._start() for _ in range(OWNERS)]
        self._likely: list[Callable[[], None]] = [
            *[self._open_one] * 12,
            *[self._deliver] * 6,
            *[self._read] * 2,
            *[partial(self._pass_time, milliseconds) for milliseconds in (100, 1_000, 1_000, 7_000)],
            *[self._open_badly] * 3,
            *[self._recover] * 2,
            self._publish,
            self._duplicate,
            *[self._land] * 2,
            self._crash,
            self._lose_channel,
            self._jump,
        ]

    def _run(self, work: Work) -> Outcome:
        return run(work, sum(execution.key == work.job.key for execution in self.around.begun))

    async def rage(self) -> None:
        """Do what the choices say, until there are none left: raises Over."""
        self._publish()
        while True:
            so_far = len(self.told)
            self._choices.of(self._likely)()
            if len(self.told) > so_far:
                await turns()

    async def calm_down(self) -> None:
        """All faults are off: go on until nothing is left to do."""
        self.told.append("quiet")
        for _ in range(PATIENCE):
            await self._settle_down()
            if self.broker.empty and not any(owner.tasks or owner.channel.unsettled for owner in self.owners):
                return
            self._pass_time(500)
            await turns()
        raise AssertionError(f"it never ends: {len(self.broker.ready)} ready, {len(self.broker.delayed)} delayed")

    async def _settle_down(self) -> None:
        for _ in range(PATIENCE):
            busy = bool(self.around.late or self.around.gates.waiting)
            while self.around.late:
                self.around.late.pop(0)()
            for gate in list(self.around.gates.waiting):
                self.around.gates.open(gate)
                await turns()
            for owner in self.owners:
                self._bring_back(owner)
                self.broker.read(owner.channel)
                while self.broker.ready and owner.takes_in:
                    busy = True
                    owner.receive(self.broker.deliver(owner.channel, 0))
                    await turns()
            if not busy:
                return
        raise AssertionError(f"it goes round and round: {self.told[-6:]}")

    # what can happen

    def _open_one(self) -> None:
        if self.around.gates.waiting:
            self.around.gates.open(self._choices.of(self.around.gates.waiting))

    def _open_badly(self) -> None:
        weak = [gate for gate in self.around.gates.waiting if gate.faults]
        if weak:
            gate = self._choices.of(weak)
            self.around.gates.open(gate, self._choices.of((FINE, *gate.faults)))

    def _deliver(self) -> None:
        takers = [owner for owner in self.owners if owner.takes_in]
        if self.broker.ready and takers:
            owner = self._choices.of(takers)
            delivery = self.broker.deliver(owner.channel, self._choices.number(len(self.broker.ready)))
            self.told.append(f"{owner.name}: delivered {delivery.message.message_id}")
            owner.receive(delivery)

    def _read(self) -> None:
        self.broker.read(self._choices.of(self.owners).channel)

    def _pass_time(self, milliseconds: int) -> None:
        self.told.append(f"{milliseconds} ms pass")
        self._now += milliseconds
        self._loop.now += milliseconds / 1000
        self.broker.mature()

    def _recover(self) -> None:
        self._bring_back(self._choices.of(self.owners))

    def _bring_back(self, owner: Owner) -> None:
        """A failed publish ends the session in good order; a store that was away is back."""
        if owner.lost_its_publisher:
            self.broker.read(owner.channel)
            self.broker.lose(owner.channel)
            owner.reconnect()
        owner.trouble = None

    def _publish(self) -> None:
        if len(self.keys) < self._limit:
            self.keys.append(f"{len(self.keys)}:{self._choices.of(SCRIPTS)}")
            self.told.append(f"published {self.keys[-1]}")
            self.broker.publish(message(self.keys[-1]))

    def _duplicate(self) -> None:
        key = self._choices.of(self.keys)
        self.told.append(f"published {key} again")
        self.broker.publish(message(key))

    def _land(self) -> None:
        if self.around.late:
            self.told.append("a late effect")
            self.around.late.pop(self._choices.number(len(self.around.late)))()

    def _crash(self) -> None:
        """Nothing of it goes on, but for requests that are on their way."""
        owner, luck = self._choices.of(self.owners), self._choices.number(4)
        self.told.append(f"{owner.name}: killed")
        self.around.gates.close(owner.name, lambda gate: gate.what in IN_FLIGHT[:luck])
        self.broker.lose(owner.channel)
        self._graves.append(owner)
        self.owners[self.owners.index(owner)] = self._start()

    def _lose_channel(self) -> None:
        owner = self._choices.of(self.owners)
        self.told.append(f"{owner.name}: lost its channel")
        self.broker.lose(owner.channel)
        owner.reconnect()

    def _jump(self) -> None:
        whose = self._choices.of(["store", *(owner.name for owner in self.owners)])
        self.around.skewed = True
        self._skew[whose] = self._choices.of((0, 3_000, -3_000, 10_000, -10_000))
        self.told.append(f"{whose}: its clock is off by {self._skew[whose]} ms")

    def _start(self) -> Owner:
        name = f"owner{next(self._names)}"
        return Owner(name, self.around, lambda: self._now + self._skew.get(name, 0))


class WatchedBackend(MemoryBackend):
    """Notes how often a claim was taken over, and that nothing that succeeded ever changes."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock)
        self.rows = self._rows
        self.takeovers: dict[str, int] = {}

    def _save(self, row: Row | None) -> None:
        if row is None:
            return
        before = self._rows.get((row.kind, row.key))
        if before is not None:
            assert before.status is not Status.SUCCEEDED, f"a result was written over: {before} by {row}"
            if row.crashes > before.crashes:
                self.takeovers[row.key] = self.takeovers.get(row.key, 0) + 1
        super()._save(row)


def check(universe: Universe) -> None:
    """What must hold when it is quiet again."""
    assert universe.around.errors == []
    for key in universe.keys:
        _check_job(universe, key)
    for letter in universe.broker.dead:
        assert letter.message_id in universe.keys
    in_queue = {letter.headers[headers.DEAD_ID] for letter in universe.broker.dead}
    assert universe.backend.letters.known.keys() <= in_queue, "the index holds a letter that is in no queue"
    for owner in universe.owners:
        assert not owner.tasks, "nothing is in hand"
        assert not owner.leases._held, "no lease is kept"
        assert owner.slots.taken == 0, "every place is free"
    for delivery in universe.broker.deliveries:
        assert len(delivery.settled) <= 1, "settled once"
        assert len(delivery.settled) == 1 or delivery.channel.owner in universe.around.gates.dead, "settled at all"


def _check_job(universe: Universe, key: str) -> None:
    row = universe.backend.rows.get(("k", key))
    assert row is not None, f"{key} is lost"
    attempts = [execution.attempt for execution in universe.around.begun if execution.key == key]
    ended = {execution.attempt for execution in universe.around.ended if execution.key == key}
    letters = [letter for letter in universe.broker.dead if letter.message_id == key]
    if universe.backend.takeovers.get(key, 0) >= universe.crash_limit:
        # One whose confirm nobody heard may lie there beside what a later copy did; or one that was sent for a lease.
        letters = [letter for letter in letters if letter.headers[headers.CODE] != Code.WORKER_CRASHED]
    assert all(attempt == 1 or attempt - 1 in ended for attempt in attempts), f"an attempt was skipped: {attempts}"
    if not universe.around.skewed:
        _check_waits(universe, key)
    if row.fault is not None and row.fault.code is Code.WORKER_CRASHED:
        assert universe.backend.takeovers[key] >= universe.crash_limit
        return
    failures = script_of(key)
    assert row.attempt == max(1, min(failures + 1, MAX_ATTEMPTS)), f"an attempt was charged wrongly: {row}"
    if failures == DOWN or 0 <= failures < MAX_ATTEMPTS:
        assert row.status is Status.SUCCEEDED, f"{key} is lost: {row}"
        assert row.result == f'"{key} {row.attempt}"'.encode()
        assert not letters
    else:
        assert row.status is Status.FAILED, f"{key} is lost: {row}"
        assert letters, f"{key} has no dead letter: {row}"
        noted = universe.backend.letters.known
        assert {letter.headers[headers.DEAD_ID] for letter in letters} & noted.keys(), f"{key} is not in the index"
        assert all(letter.headers[headers.ATTEMPT] == row.attempt for letter in letters)


def _check_waits(universe: Universe, key: str) -> None:
    """No attempt begins before the wait after the one before it is over, but for the tick that a copy may be early."""
    ends: dict[int, int] = {}
    for execution in universe.around.ended:
        if execution.key == key:
            ends.setdefault(execution.attempt, execution.at)
    for execution in universe.around.begun:
        if execution.key == key and execution.attempt > 1:
            wait = 1_000 * 2 ** (execution.attempt - 2)
            assert execution.at >= ends[execution.attempt - 1] + wait - TICK, f"{execution} came too early: {ends}"
