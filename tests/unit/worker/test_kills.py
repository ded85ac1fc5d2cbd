"""Who is charged with kills that nobody saw coming: with a clock and a killer of their own."""

from itertools import count
from random import Random

import pytest

from consumer.core.job import Job
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.kills import AT_ONCE, ENOUGH, Kills
from consumer.worker.run import Run


def a_run(number: int, *, suspect: bool = True) -> Run:
    run = Run(number, Work(Job("kind", "key", b""), 1, 1.0), Sort.IO, lambda: None)
    run.ends = 4 if suspect else 0
    run.begin(100.0, 1)
    return run


async def test_a_suspect_that_meets_every_kill_is_charged_with_the_last() -> None:
    kills, suspect = Kills(), a_run(1)
    assert [len(kills.meet([suspect], 100.5)) for _ in range(ENOUGH)] == [0] * (ENOUGH - 1) + [1]
    assert kills.pause == pytest.approx(1.5)


async def test_the_first_kills_of_a_suspect_let_nobody_wait() -> None:
    kills, suspect = Kills(), a_run(1)
    for _ in range(AT_ONCE):
        kills.meet([suspect], 100.5)
    assert kills.pause == 0
    kills.meet([suspect], 100.5)
    assert kills.pause > 0


async def test_a_kill_where_no_suspect_is_clears_it() -> None:
    kills, suspect = Kills(), a_run(1)
    for _ in range(5):
        assert all(not kills.meet([suspect], 100.5) for _ in range(ENOUGH - 1))
        assert not kills.meet([a_run(2, suspect=False), a_run(3, suspect=False)], 100.5)
    assert all(not kills.meet([suspect], 100.5) for _ in range(ENOUGH - 1))
    assert not kills.meet([], 100.5)
    assert not kills.meet([suspect], 100.5)


async def test_the_kills_of_one_suspect_dont_count_for_the_next() -> None:
    kills, first, second = Kills(), a_run(1), a_run(2)
    assert all(not kills.meet([first], 100.5) for _ in range(ENOUGH - 1))
    assert not kills.meet([second], 100.5)
    assert not kills.meet([first], 100.5)


async def test_an_innocent_whose_only_child_is_killed_again_and_again_is_not_charged() -> None:
    """Each of 2,000 jobs would need 5 s, and somebody kills its only child each 0.01 to 100 s, by chance or a clock."""
    chance, numbers = Random(1), count(1)
    for _ in range(2_000):
        every, by_clock = 10 ** chance.uniform(-2, 2), chance.random() < 0.5
        kills, run = Kills(), a_run(next(numbers))
        now, next_kill = 100.0, 100.0 + every * chance.random()
        for _ in range(50):
            run.started = now
            if next_kill > now + 5:
                break
            assert not kills.meet([run], next_kill)
            now, kills.pause = next_kill + kills.pause, 0.0
            next_kill += every if by_clock else chance.expovariate(1 / every)
            while next_kill < now:
                kills.meet([], next_kill)
                next_kill += every if by_clock else chance.expovariate(1 / every)
