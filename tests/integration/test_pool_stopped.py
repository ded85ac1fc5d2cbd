"""Processes of the pool that are stopped (SIGSTOP): they don't die, and don't do anything either."""

import asyncio
import os
import signal
import time

import pytest

from consumer.core.outcome import Interrupted, Succeeded, TimedOut
from tests.support.pools import gone, pool, state, zygote_of
from tests.support.waiting import until


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T", "a stopped process")


@pytest.mark.quiet
async def test_a_child_that_is_stopped_while_it_runs_a_job_is_found_by_the_deadline_of_that_job() -> None:
    async with pool(processes=1) as bench:
        started = time.monotonic()
        running = bench.begin("sleep", {"seconds": 0.2}, seconds=1)
        behind = bench.begin("echo", 1)
        await bench.until(running=1)
        [pid] = bench.pool.pids
        stop(pid)
        assert isinstance(await running, TimedOut)
        assert 1 <= time.monotonic() - started < 1 + 0.4 + 0.6
        assert isinstance(await behind, Succeeded)
        await gone([pid])
        assert bench.exits == ["timeout"]


async def test_what_is_sent_to_a_child_that_was_stopped_while_it_idled_runs_elsewhere_uncharged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("consumer.worker.vigil.EVERY", 0.2)
    async with pool(processes=1) as bench:
        [pid] = bench.pool.pids
        stop(pid)
        jobs = [bench.begin("sleep", {"seconds": 0}) for _ in range(2)]
        async with asyncio.timeout(5):
            assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*jobs))
        await gone([pid])
        assert bench.exits == ["stopped"]


async def test_a_job_whose_time_is_over_before_it_began_at_a_stopped_child_is_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("consumer.worker.vigil.EVERY", 1_000)
    async with pool(processes=1) as bench:
        stop(bench.pool.pids[0])
        async with asyncio.timeout(5):
            assert isinstance(await bench.run("sleep", {"seconds": 0}, seconds=0.5), Succeeded)
        assert bench.exits == ["stopped"]


@pytest.mark.parametrize("children_too", [False, True])
async def test_a_stopped_zygote_is_replaced_with_its_children_and_nobody_is_charged(
    monkeypatch: pytest.MonkeyPatch, children_too: bool
) -> None:
    monkeypatch.setattr("consumer.worker.pulse.EVERY", 0.1)
    monkeypatch.setattr("consumer.worker.pulse.SILENCE", 0.5)
    async with pool() as bench:
        running = bench.begin("sleep", {"seconds": 30})
        await bench.until(running=1)
        family = [*bench.pool.pids, zygote_of(bench.pool.pids[0])]
        for pid in family if children_too else family[-1:]:
            stop(pid)
        async with asyncio.timeout(10):
            assert await running == Interrupted("zygote died")
            assert isinstance(await bench.run("echo", 1), Succeeded)
        await gone(family)
        await bench.until_full()


async def test_a_pool_stops_also_where_everything_in_it_is_stopped() -> None:
    async with pool() as bench:
        family = [*bench.pool.pids, zygote_of(bench.pool.pids[0])]
        for pid in family:
            stop(pid)
        async with asyncio.timeout(10):
            await bench.pool.stop(grace=0)
        await gone(family)
