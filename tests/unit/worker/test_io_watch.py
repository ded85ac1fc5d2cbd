"""The watch with a clock of its own: who is cancelled, who is charged, and who is given more time."""

from dataclasses import dataclass, field

import pytest

from consumer.core.job import Job
from consumer.core.ports import Work
from consumer.worker import io_watch
from consumer.worker.catalogue import Sort
from consumer.worker.io_watch import EVERY, IoWatch
from consumer.worker.run import Run

GRACE, STALL = 0.4, 2.0


@dataclass
class Child:
    """An io child whose loop moves, unless it is told not to, and what was asked of it."""

    running: list[Run]
    pid: int = 1
    stolen_from: bool = False
    steps: int = 0
    who: int = 0
    in_threads: frozenset[int] = frozenset()
    at_itself: frozenset[int] = frozenset()
    moves: bool = True
    cancelled: list[int] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    retired: bool = False
    guilty: set[int] | None = None
    stopped: bool = False

    def hold(self) -> None:
        self.held.append("hold")

    def release(self) -> None:
        self.held.append("release")

    def cancel(self, run: Run) -> None:
        run.overran = True
        self.cancelled.append(run.id)

    def retire(self) -> None:
        self.retired = True

    def give_up(self, guilty: frozenset[int], *, stopped: bool) -> None:
        self.guilty, self.stopped = set(guilty), stopped


class World:
    def __init__(self, *timeouts: float) -> None:
        runs = [
            Run(n, Work(Job("kind", "key", b""), 1, timeout), Sort.IO, lambda: None)
            for n, timeout in enumerate(timeouts, 1)
        ]
        for run in runs:
            run.begin(100.0, 1)
        self.child = Child(runs)
        self.watch = IoWatch(self.child, self.child, GRACE, STALL)
        self.now = 100.0

    def passes(self, seconds: float) -> None:
        """Until then, or until the child is given up."""
        for _ in range(round(seconds / EVERY)):
            self.now += EVERY
            self.child.steps += self.child.moves
            self.watch.look(self.now)
            if self.child.guilty is not None:
                return


async def test_a_run_is_cancelled_when_its_time_is_over_and_others_run_on() -> None:
    world = World(1.0, 5.0)
    world.passes(0.9)
    assert world.child.cancelled == []
    world.passes(0.2)
    assert (world.child.cancelled, world.child.retired) == ([1], False)


async def test_a_run_that_minds_no_cancellation_is_charged_before_the_grace_is_over() -> None:
    world = World(1.0, 5.0)
    world.passes(3)
    assert (world.child.guilty, world.child.retired) == ({1}, True)
    assert world.now <= 101 + GRACE


async def test_a_cancelled_run_is_over_at_once_whatever_its_timeout() -> None:
    world = World(60.0)
    world.child.running[0].cancelled_at = 100.0
    world.passes(3)
    assert world.child.cancelled == [1]
    assert world.now <= 100 + GRACE


async def test_who_holds_up_the_loop_is_charged_and_nobody_who_had_to_wait() -> None:
    world = World(0.3, 60.0)
    world.child.moves, world.child.who = False, 2
    world.passes(10)
    assert (world.child.guilty, world.child.cancelled) == ({2}, [])
    assert world.now == pytest.approx(100 + STALL, abs=3 * EVERY)


async def test_who_holds_up_the_loop_beyond_its_own_time_is_charged_by_its_grace() -> None:
    world = World(0.3, 1.0)
    world.child.moves, world.child.who = False, 2
    world.passes(10)
    assert world.child.guilty == {2}
    assert world.now <= 101 + GRACE


async def test_time_that_another_took_is_given_back() -> None:
    world = World(1.0, 60.0)
    world.child.moves, world.child.who = False, 2
    world.passes(1.5)
    world.child.moves, world.child.who = True, 0
    world.passes(0.8)
    assert world.child.cancelled == []
    world.passes(0.5)
    assert world.child.cancelled == [1]


async def test_what_has_not_begun_is_taken_back_from_a_loop_that_is_held_up() -> None:
    world = World(60.0)
    world.child.moves = False
    world.passes(0.3)
    assert world.child.held[-1] == "hold"
    world.child.moves = True
    world.passes(0.3)
    assert world.child.held.count("hold") == 1
    assert world.child.held[-1] == "release"


async def test_a_loop_that_nobody_seems_to_hold_up_is_given_up_and_nobody_charged() -> None:
    world = World(60.0, 60.0)
    world.child.moves = False
    world.passes(10)
    assert world.child.guilty == set()


async def test_a_thread_that_lets_no_other_run_is_found_where_it_is_the_only_one() -> None:
    alone, together = World(60.0, 60.0), World(60.0, 60.0)
    alone.child.moves, alone.child.in_threads = False, frozenset({1})
    together.child.moves, together.child.in_threads = False, frozenset({1, 2})
    alone.passes(10)
    together.passes(10)
    assert (alone.child.guilty, together.child.guilty) == ({1}, set())


@pytest.mark.parametrize("what", ["is_stopped", "is_dead"])
async def test_nobody_is_charged_where_the_child_was_stopped_or_is_dead(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(io_watch, what, lambda pid: pid == 1)
    world = World(1.0, 60.0)
    world.child.moves, world.child.who = False, 1
    world.passes(10)
    assert (world.child.guilty, world.child.stopped) == (set(), True)
    assert world.now <= 101 + GRACE


async def test_a_job_that_stopped_its_own_child_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_watch, "is_stopped", lambda pid: pid == 1)
    world = World(1.0, 60.0)
    world.child.moves, world.child.at_itself = False, frozenset({2})
    world.passes(10)
    assert (world.child.guilty, world.child.stopped) == ({2}, True)
