from collections.abc import Callable
from typing import Any, cast

import pytest

from consumer.worker import procfs
from consumer.worker.run import Run
from consumer.worker.vigil import PATIENCE, Vigil


class Child:
    """Whether it has begun, is stopped or waits is what the test says."""

    pid = 1

    def __init__(self) -> None:
        self.first: Run | None = cast("Run", type("SomeRun", (), {"id": 7}))
        self.begun = False
        self.given_up: list[str] = []
        self.weighed: list[int] = []

    def has_begun(self, run: Run) -> bool:
        return self.begun


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def so_often(child: Child, times: int, *, stopped: bool = False, waits: bool = False) -> None:
        monkeypatch.setattr(procfs, "is_stopped", lambda _: stopped)
        monkeypatch.setattr(procfs, "waits", lambda _: waits)
        monkeypatch.setattr(procfs, "own_memory", lambda _: 5)
        watch = Vigil(child, lambda: child.given_up.append("up"), lambda _, held: child.weighed.append(held))
        for _ in range(times):
            watch._look()
            watch.stop()

    return so_often


async def test_a_stopped_child_that_has_not_begun_is_given_up_at_the_first_look(look: Callable[..., Any]) -> None:
    child = Child()
    look(child, 1, stopped=True)
    assert child.given_up == ["up"]


async def test_a_stopped_child_that_runs_a_job_is_left_to_its_timeout(look: Callable[..., Any]) -> None:
    child = Child()
    child.begun = True
    look(child, 3, stopped=True)
    assert child.given_up == []
    assert child.weighed == [5] * 3


async def test_one_that_waits_where_it_should_begin_is_given_up_soon(look: Callable[..., Any]) -> None:
    child = Child()
    look(child, PATIENCE - 1, waits=True)
    assert child.given_up == []
    look(child, PATIENCE, waits=True)
    assert child.given_up == ["up"]


async def test_one_that_wants_to_run_on_a_busy_machine_is_never_given_up(look: Callable[..., Any]) -> None:
    child = Child()
    look(child, 50)
    assert child.given_up == []


async def test_nobody_looks_where_there_is_nothing_to_do(look: Callable[..., Any]) -> None:
    child = Child()
    child.first = None
    look(child, 5, stopped=True)
    assert child.given_up == []
