"""What a child may use, and when it has served long enough."""

import asyncio
import os
from itertools import pairwise
from typing import Any

import pytest

from consumer.core.outcome import Crashed, Failed, Succeeded, TimedOut
from schemas.codes import Code
from tests.support.pools import CONFIG, Bench, pool
from tests.support.waiting import eventually

MODULES = (*CONFIG.modules, "leavers")
MIB = 1024 * 1024
GIB = 1024 * MIB


@pytest.mark.parametrize(
    "limits", [{"container_memory": 600 * MIB}, {"memory_limit": 250 * MIB, "container_memory": 100 * GIB}]
)
async def test_a_child_may_have_its_share_of_the_containers_memory_or_what_the_settings_say(
    limits: dict[str, Any],
) -> None:
    async with pool(modules=MODULES, **limits) as bench:
        assert await bench.result("holds", 100 * MIB)
        outcome = await bench.run("needs", {"bytes": 400 * MIB, "seconds": 0})
        assert isinstance(outcome, Crashed)
        assert outcome.fault.code is Code.OUT_OF_MEMORY


async def test_no_limit_is_a_choice() -> None:
    async with pool(processes=1, modules=MODULES, memory_limit=-1, container_memory=200 * MIB) as bench:
        assert isinstance(await bench.run("needs", {"bytes": 400 * MIB, "seconds": 0}), Succeeded)


async def test_memory_that_is_only_reserved_doesnt_count() -> None:
    async with pool(processes=1, modules=MODULES, memory_limit=250 * MIB) as bench:
        assert await bench.result("reserves", 64 * GIB) == 64 * GIB


async def test_memory_that_the_kernel_doesnt_count_as_data_is_seen_by_the_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("consumer.worker.vigil.EVERY", 0.1)
    async with pool(processes=1, modules=MODULES, memory_limit=250 * MIB) as bench:
        outcome = await bench.run("shares_memory", 300 * MIB)
        assert isinstance(outcome, Crashed)
        assert outcome.fault.code is Code.OUT_OF_MEMORY


@pytest.mark.parametrize("kind", ["spins", "spins_in_c"])
async def test_a_job_that_uses_more_cpu_than_its_limit_is_ended_and_charged(kind: str) -> None:
    async with pool(processes=1, modules=MODULES, cpu_limit=0.3) as bench:
        outcome = await bench.run(kind, 60)
        assert isinstance(outcome, TimedOut)
        assert outcome.fault.code is Code.EXECUTION_TIMEOUT
        assert outcome.fault.message == "the job used more CPU time than its limit of 0.3 s (pool.cpu_limit_seconds)"
        assert outcome.usage.cpu_seconds > 0.2
        assert isinstance(await bench.run("sleep", {"seconds": 0.4}), Succeeded)
        assert bench.exits == ["timeout"]


async def test_the_limit_of_cpu_is_of_each_job_and_not_of_all_together() -> None:
    async with pool(processes=1, modules=MODULES, cpu_limit=0.3) as bench:
        for _ in range(6):
            assert isinstance(await bench.run("spins", 0.2), Succeeded)
        assert bench.exits == []


async def test_a_job_that_opens_too_many_files_fails_and_leaves_none_to_the_next() -> None:
    async with pool(processes=1, modules=MODULES, open_files=100) as bench:
        outcome = await bench.run("opens", 200)
        assert isinstance(outcome, Failed)
        assert outcome.fault.error_type == "OSError"
        assert await bench.result("opens", 5) == 5


async def recycled(bench: Bench, count: int) -> None:
    async def so() -> bool:
        return bench.exits == ["recycle"] * count

    await eventually(so, f"{count} recycled children, and not {bench.exits}")
    await bench.until_full()


async def test_a_child_is_replaced_at_its_age_and_serves_until_its_successor_is_ready() -> None:
    async with pool(processes=2, modules=MODULES, recycle_age=0.5) as bench:
        first = {*bench.pool.pids}
        met: set[int] = set()
        while len(met) < 5:
            met.add(await bench.result("sleep", {"seconds": 0.01}))
            assert bench.pool.full
        assert met & first
        assert {*bench.exits} == {"recycle"}


async def test_a_child_that_keeps_too_much_memory_after_a_job_is_replaced() -> None:
    async with pool(processes=1, modules=MODULES, recycle_memory=150 * MIB) as bench:
        pid = await bench.result("holds", 20 * MIB)
        assert isinstance(await bench.run("needs", {"bytes": 300 * MIB, "seconds": 0}), Succeeded)
        assert await bench.result("holds", 1) == pid
        await bench.result("holds", 200 * MIB)
        await recycled(bench, 1)
        assert await bench.result("holds", 1) != pid


async def test_the_peak_of_one_job_is_not_that_of_the_next() -> None:
    async with pool(processes=1, modules=MODULES) as bench:
        small, large, after = [await bench.run("needs", {"bytes": size, "seconds": 0}) for size in (1, 300 * MIB, 1)]
    assert isinstance(small, Succeeded)
    assert isinstance(large, Succeeded)
    assert isinstance(after, Succeeded)
    assert large.usage.peak_memory > 300 * MIB
    assert after.usage.peak_memory < small.usage.peak_memory + 30 * MIB


async def test_jobs_that_dont_fit_into_the_memory_together_run_one_after_the_other() -> None:
    room = {"container_memory": 900 * MIB, "memory_limit": -1, "processes": 3}
    async with pool(modules=MODULES, **room) as bench:
        await bench.run("needs", {"bytes": 500 * MIB, "seconds": 0})
        large = [bench.begin("needs", {"bytes": 1, "seconds": 0.1}) for _ in range(4)]
        small = [bench.begin("sleep", {"seconds": 0}) for _ in range(20)]
        outcomes = await asyncio.gather(*large)
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*small))
    spans = sorted((o.usage.started_at, o.usage.finished_at) for o in outcomes if isinstance(o, Succeeded))
    assert len(spans) == 4
    assert all(later[0] >= sooner[1] - 1 for sooner, later in pairwise(spans))


async def test_a_replacement_is_there_within_a_tenth_of_a_second_however_long_the_modules_take_to_import(
    tmp_path: Any,
) -> None:
    (tmp_path / "heavy.py").write_text("import time\ntime.sleep(0.5)\n")
    async with pool(processes=1, modules=("heavy", *CONFIG.modules), path=(str(tmp_path), *CONFIG.path)) as bench:
        took = []
        for _ in range(5):
            [pid] = bench.pool.pids
            loop = asyncio.get_running_loop()
            os.kill(pid, 9)
            killed = loop.time()
            assert await bench.result("whoami", {}) != pid
            took.append(loop.time() - killed)
        assert min(took) < 0.1
