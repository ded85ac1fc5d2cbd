"""The latest word of each running job reaches its row."""

import math

import pytest

from consumer.core.row import Ref
from consumer.progress import Progress
from tests.contract.stores import KIND, claim_of, row_of, run_of
from tests.support.twins import World


class Running:
    def __init__(self) -> None:
        self.world = World()
        self.held = frozenset[Ref]()
        self.progress = Progress(self.world.store, self)

    async def start(self, key: str = "a") -> None:
        self.held |= {await run_of(self.world.store, claim_of(key))}

    def said(self, fraction: float, note: str = "", key: str = "a") -> None:
        self.progress.progressed(KIND, key, fraction, note)

    async def row(self, key: str = "a") -> tuple[float | None, str]:
        row = await row_of(self.world.store, key)
        return row.progress, row.progress_note


async def test_only_the_latest_word_of_each_job_is_written() -> None:
    running = Running()
    await running.start("a")
    await running.start("b")
    for page in range(1, 5):
        running.said(page / 10, f"page {page}")
    running.said(0.5, key="b")
    await running.progress.write()
    assert [await running.row("a"), await running.row("b")] == [(0.4, "page 4"), (0.5, "")]


async def test_what_a_job_says_that_we_don_t_hold_is_dropped() -> None:
    running = Running()
    await running.start("a")
    running.held = frozenset()
    running.said(0.5)
    await running.progress.write()
    assert await running.row() == (None, "")


async def test_what_the_store_could_not_take_is_written_later_unless_the_job_says_more() -> None:
    running = Running()
    await running.start("a")
    await running.start("b")
    running.said(0.1)
    running.said(0.2, key="b")
    running.world.store.away = ["progress"]
    await running.progress.write()
    running.said(0.3)
    await running.progress.write()
    assert [await running.row("a"), await running.row("b")] == [(0.3, ""), (0.2, "")]


@pytest.mark.parametrize(("said", "kept"), [(-1.0, 0.0), (1.5, 1.0), (math.nan, 0.0), (math.inf, 1.0)])
async def test_a_fraction_is_one_whatever_a_child_says(said: float, kept: float) -> None:
    running = Running()
    await running.start("a")
    running.said(said)
    await running.progress.write()
    assert await running.row() == (kept, "")
