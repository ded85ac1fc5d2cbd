"""The line before the io children; the one before cpu children is shown with the dispatch."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

from consumer.core.job import Job
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.kills import Kills
from consumer.worker.lines import IoLine
from consumer.worker.run import Run
from tests.support.waiting import eventually


@dataclass
class Child:
    ready: bool = True
    leaving: bool = False
    retiring: bool = False
    stolen_from: bool = False
    fresh: bool = True
    queue: deque[Run] = field(default_factory=deque)

    def send(self, run: Run) -> None:
        self.queue.append(run)
        self.fresh = False

    def retire(self) -> None:
        self.retiring = True

    @property
    def ids(self) -> list[int]:
        return [run.id for run in self.queue]


def line(*children: Child, concurrency: int, kills: Kills | None = None) -> IoLine:
    return IoLine(cast("Any", [*children]), concurrency, kills or Kills())


def a_run(number: int, ends: int = 0) -> Run:
    run = Run(number, Work(Job("kind", "key", b""), 1, 1.0), Sort.IO, lambda: None)
    run.ends = ends
    return run


async def test_runs_go_where_the_fewest_are_until_all_are_full() -> None:
    children = Child(), Child()
    io = line(*children, concurrency=2)
    for number in range(5):
        io.add(a_run(number))
    io.go()
    assert [child.ids for child in children] == [[0, 2], [1, 3]]
    children[1].queue.popleft()
    io.go()
    assert children[1].ids == [3, 4]


async def test_a_child_that_goes_or_whose_loop_is_held_up_gets_nothing() -> None:
    children = Child(ready=False), Child(leaving=True), Child(retiring=True), Child(stolen_from=True)
    io = line(*children, concurrency=2)
    io.add(a_run(1))
    io.go()
    assert [child.ids for child in children] == [[], [], [], []]


async def test_a_suspect_has_a_new_child_for_itself_and_gets_its_turn() -> None:
    first, second = Child(), Child()
    io = line(first, concurrency=10)
    io.add(a_run(1))
    io.go()
    io.back(a_run(2, ends=4))
    io.add(a_run(3))
    io.go()
    assert first.ids == [1]
    first.queue.clear()
    io.go()
    assert (first.ids, first.retiring) == ([], True)
    io.members.append(cast("Any", second))
    io.go()
    assert second.ids == [2]
    second.queue.clear()
    io.go()
    assert second.ids == [3]


async def test_after_a_kill_the_others_have_the_children_to_themselves_for_a_while() -> None:
    going, child, kills = Child(leaving=True), Child(), Kills()
    io = line(going, concurrency=10, kills=kills)
    kills.pause = 0.05
    io.back(a_run(1, ends=4))
    io.add(a_run(2))
    io.go()
    await asyncio.sleep(0)
    io.members.append(cast("Any", child))
    io.go()
    assert child.ids == [2]
    child.queue.clear()
    io.members.append(cast("Any", fresh := Child()))
    io.go()
    assert fresh.ids == []

    async def tried() -> bool:
        return fresh.ids == [1]

    await eventually(tried, "the end of the pause, which began with a child to have")


async def test_others_run_on_while_a_suspect_waits_where_there_is_a_second_child() -> None:
    first, second = Child(), Child()
    first.queue.append(a_run(0))
    second.queue.append(a_run(1))
    io = line(first, second, concurrency=10)
    io.back(a_run(2, ends=4))
    io.add(a_run(3))
    io.go()
    assert (first.ids, second.ids) == ([0], [1, 3])


async def test_one_suspect_at_a_time_is_tried_and_the_other_children_are_for_the_others() -> None:
    first, second = Child(), Child()
    io = line(first, second, concurrency=10)
    for number in (1, 2):
        io.back(a_run(number, ends=4))
    io.add(a_run(3))
    io.go()
    assert (first.ids, second.ids) == ([2], [3])
    io.members[0] = third = cast("Any", Child())
    io.go()
    assert (third.ids, second.ids) == ([1], [3])


async def test_what_waits_can_be_forgotten_and_given_back() -> None:
    io = line(concurrency=1)
    runs = [a_run(1), a_run(2), a_run(3, ends=4)]
    for run in runs:
        io.back(run)
    assert io.forget(runs[0])
    assert not io.forget(runs[0])
    assert {run.id for run in io.clear()} == {2, 3}
    assert io.clear() == []
