"""Children here are stand-ins: what real ones do with a run is shown in tests/integration."""

import asyncio
from collections import deque
from typing import Any, cast

from consumer.core.job import Job
from consumer.core.outcome import Interrupted
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.dispatch import Dispatch
from consumer.worker.gate import Gate
from consumer.worker.kills import Kills
from consumer.worker.lines import CpuLine, IoLine
from consumer.worker.needs import Needs
from consumer.worker.run import Run


class Child:
    """Claims what comes first; the rest can be stolen."""

    def __init__(self) -> None:
        self.queue: deque[Run] = deque()
        self.ready, self.leaving, self.retiring, self.stolen_from = True, False, False, False

    def send(self, run: Run) -> None:
        self.queue.append(run)

    def steal(self) -> list[Run]:
        stolen = [*self.queue][1:]
        self.queue = deque([*self.queue][:1])
        self.stolen_from = bool(stolen)
        return stolen


def dispatch(*children: Child) -> Dispatch:
    return Dispatch(CpuLine(cast("Any", [*children]), len(children), Gate(Needs(0, 1))), IoLine([], 1, Kills()))


def a_run(number: int, *, alone: bool = False) -> Run:
    return Run(number, Work(Job("kind", "key", b""), 1, 1.0, alone), Sort.CPU, lambda: None)


def numbers(child: Child) -> list[int]:
    return [run.id for run in child.queue]


async def test_every_child_has_a_run_before_one_has_two() -> None:
    children = [Child(), Child()]
    queue = dispatch(*children)
    for number in range(5):
        queue.add(a_run(number))
    assert sorted(map(len, map(numbers, children))) == [2, 2]
    assert {numbers(child)[0] for child in children} == {0, 1}


async def test_a_child_that_is_about_to_go_gets_nothing() -> None:
    going, retiring, starting = Child(), Child(), Child()
    going.leaving, retiring.retiring, starting.ready = True, True, False
    dispatch(going, retiring, starting).add(a_run(1))
    assert [*map(numbers, (going, retiring, starting))] == [[], [], []]


async def test_successors_start_when_those_before_them_are_done() -> None:
    retiring, successor = Child(), Child()
    retiring.queue.append(a_run(0))
    retiring.retiring = True
    queue = Dispatch(CpuLine(cast("Any", [retiring, successor]), 1, Gate(Needs(0, 1))), IoLine([], 1, Kills()))
    queue.add(a_run(1))
    assert numbers(successor) == []
    retiring.queue.clear()
    queue.go()
    assert numbers(successor) == [1]


async def test_a_run_behind_a_long_one_moves_to_the_child_that_idles_and_no_other_takes_its_place() -> None:
    busy, idle = Child(), Child()
    idle.ready = False
    queue = dispatch(busy, idle)
    queue.add(a_run(1))
    queue.add(a_run(2))
    assert numbers(busy) == [1, 2]
    idle.ready = True
    queue.idles()
    async with asyncio.timeout(5):
        while not idle.queue:  # noqa: ASYNC110 - the timer is the loop's own
            await asyncio.sleep(0)
    queue.add(a_run(3))
    queue.add(a_run(4))
    assert (numbers(busy), numbers(idle)) == ([1], [2, 3])


async def test_what_comes_back_goes_first() -> None:
    child = Child()
    child.ready = False
    queue = dispatch(child)
    queue.add(a_run(3))
    queue.back([a_run(1), a_run(2)])
    child.ready = True
    queue.go()
    assert numbers(child) == [1, 2]


async def test_a_run_that_must_be_alone_waits_for_all_and_holds_up_all() -> None:
    children = [Child(), Child()]
    queue = dispatch(*children)
    ordinary, suspects = [a_run(1), a_run(2)], [a_run(3, alone=True), a_run(4, alone=True)]
    queue.add(ordinary[0])
    queue.add(suspects[0])
    queue.add(suspects[1])
    queue.add(ordinary[1])
    started = []
    for _ in range(4):
        [child] = [child for child in children if child.queue]
        [run] = child.queue
        started.append(run.id)
        child.queue.clear()
        queue.over(run)
        queue.go()
    assert started == [1, 3, 4, 2]


async def test_withdrawing_leaves_only_what_has_started() -> None:
    child = Child()
    queue = dispatch(child)
    runs = [a_run(number) for number in range(3)] + [a_run(3, alone=True)]
    for run in runs:
        queue.add(run)
    queue.withdraw()
    assert numbers(child) == [0]
    assert not runs[0].outcome.done()
    assert [run.outcome.result() for run in runs[1:]] == [Interrupted("withdrawn")] * 3
