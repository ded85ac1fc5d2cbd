"""Io children that die or don't move: only who did it is charged, and all others run again."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from consumer.core.outcome import Crashed, Interrupted, Outcome, Succeeded, TimedOut
from consumer.worker import kills
from schemas.codes import Code
from tests.support.pools import Bench, pool, zygote_of
from tests.support.waiting import elapse, eventually

IO: dict[str, Any] = {"modules": ("waiting", "unruly")}


async def until_running(bench: Bench, count: int) -> None:
    async def so() -> bool:
        return bench.pool.figures().running == count

    await eventually(so, f"{count} running jobs")


def naps(bench: Bench, count: int = 5, seconds: float = 0.4) -> list[asyncio.Task[Outcome]]:
    return [bench.begin("nap", {"seconds": seconds}) for _ in range(count)]


async def all_succeed(tasks: list[asyncio.Task[Outcome]]) -> set[int]:
    """The children in which they did."""
    outcomes = await asyncio.gather(*tasks)
    assert all(isinstance(outcome, Succeeded) for outcome in outcomes), outcomes
    return {int(outcome.result) for outcome in outcomes if isinstance(outcome, Succeeded)}


@pytest.mark.parametrize(
    ("kind", "payload", "how"),
    [
        ("async_crash", "segfault", "was killed by SIGSEGV"),
        ("async_crash", "os_exit", "exited with code 3"),
        ("async_crash", "own_hand", "was killed by SIGKILL"),
        ("crash_in_task", None, "exited with code 4"),
        ("crash_in_callback", None, "exited with code 5"),
        ("crash_in_thread", None, "exited with code 6"),
    ],
)
async def test_a_crash_is_charged_to_the_job_that_did_it_and_its_neighbours_run_again(
    kind: str, payload: Any, how: str
) -> None:
    async with pool(**IO) as bench:
        neighbours = naps(bench)
        guilty = await bench.run(kind, payload)
        assert isinstance(guilty, Crashed)
        assert (guilty.fault.code, how in guilty.fault.message) == (Code.WORKER_CRASHED, True), guilty.fault
        assert len(await all_succeed(neighbours)) == 1
        assert (bench.exits, bench.ended) == (["crash"], ["io"])


async def test_a_crash_that_nobody_surely_did_is_charged_when_it_happens_to_a_job_alone() -> None:
    async with pool(**IO) as bench:
        neighbours = naps(bench, 3, seconds=0.01)
        guilty = bench.begin("crash_unseen")
        assert isinstance(await guilty, Crashed)
        await all_succeed(neighbours)
        await bench.until_full()
        assert bench.exits == ["crash"] * 3


async def test_a_job_whose_kills_nobody_sees_is_charged_in_the_end_and_its_neighbours_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kills, "ENOUGH", 3)
    async with pool(**IO) as bench:
        neighbours = naps(bench, 1, seconds=0.1)
        guilty = await bench.run("async_crash", "unseen")
        assert isinstance(guilty, Crashed)
        assert "was killed by SIGKILL" in guilty.fault.message
        await all_succeed(neighbours)
        assert bench.exits.count("crash") == 4 + 3


async def test_a_kill_that_is_heard_of_late_is_still_no_doing_of_the_job_that_was_alone_there() -> None:
    async with pool(**IO) as bench:
        suspect = bench.begin("nap", {"seconds": 0.3})
        await until_running(bench, 1)
        [child] = bench.pool._crew.members
        child.queue[0].ends = 4
        zygote = zygote_of(child.pid)
        os.kill(zygote, signal.SIGSTOP)
        os.kill(child.pid, signal.SIGKILL)
        await elapse(0.5)
        os.kill(zygote, signal.SIGCONT)
        await all_succeed([suspect])


async def test_a_job_whose_time_is_over_has_timed_out_whoever_ends_its_child() -> None:
    async with pool(**IO, kill_grace=20) as bench:
        stubborn, neighbour = bench.begin("swallows_cancel", seconds=0.2), bench.begin("nap", {"seconds": 0.5})
        await until_running(bench, 2)

        async def cancelled() -> bool:
            return any(run.overran for member in bench.pool._crew.members for run in member.queue)

        await eventually(cancelled, "the end of its time")
        os.kill(bench.pool.pids[0], signal.SIGKILL)
        assert isinstance(await stubborn, TimedOut)
        await all_succeed([neighbour])


async def test_nobody_is_charged_for_a_child_that_is_killed_from_outside_while_all_wait() -> None:
    async with pool(**IO) as bench:
        neighbours = naps(bench)
        await until_running(bench, 5)
        [pid] = bench.pool.pids
        os.kill(pid, signal.SIGKILL)

        async def replaced() -> bool:
            return bench.pool.full and bench.pool.pids != [pid]

        await eventually(replaced, "a new child")
        assert pid not in await all_succeed(neighbours)
        assert bench.exits == ["crash"]


async def test_memory_that_a_job_could_not_have_is_charged_to_it_and_its_neighbours_finish_where_they_are() -> None:
    async with pool(**IO) as bench:
        neighbours = naps(bench)
        await until_running(bench, 5)
        [pid] = bench.pool.pids
        guilty = await bench.run("raises", "memory")
        assert isinstance(guilty, Crashed)
        assert guilty.fault.code is Code.OUT_OF_MEMORY
        assert await all_succeed(neighbours) == {pid}
        assert await bench.result("nap", {"seconds": 0}) != pid


@pytest.mark.quiet
async def test_a_job_out_of_time_is_cancelled_and_may_clean_up(tmp_path: Path) -> None:
    async with pool(**IO) as bench:
        neighbours = naps(bench)
        started = time.monotonic()
        outcome = await bench.run("cleans_up", str(tmp_path / "mark"), seconds=0.2)
        took = time.monotonic() - started
        assert isinstance(outcome, TimedOut)
        assert outcome.fault.error_type == "consumer.worker.handler.JobTimeout"
        assert outcome.fault.message == "the job ran longer than its execution timeout of 0.2 s"
        assert "in cleans_up\n    await asyncio.sleep(1000)" in outcome.fault.traceback
        assert (tmp_path / "mark").read_text() == "cleaned"
        assert 0.2 <= took < 0.2 + 0.4
        await all_succeed(neighbours)
    assert bench.exits == ["drain"]


async def test_a_result_that_comes_after_the_cancellation_is_late() -> None:
    async with pool(**IO) as bench:
        assert isinstance(await bench.run("returns_although_cancelled", seconds=0.1), TimedOut)
    assert bench.exits == ["drain"]


@pytest.mark.quiet
@pytest.mark.parametrize("kind", ["swallows_cancel", "spins_forever", "blocks"])
async def test_a_job_that_minds_nothing_is_over_by_its_timeout_and_the_grace(kind: str) -> None:
    async with pool(**IO) as bench:
        neighbours = naps(bench, seconds=1.2)
        await until_running(bench, 5)
        started = time.monotonic()
        outcome = await bench.run(kind, 1000, seconds=0.5)
        took = time.monotonic() - started
        assert isinstance(outcome, TimedOut)
        assert outcome.fault.code is Code.EXECUTION_TIMEOUT
        assert took < 0.5 + 0.4 + 0.5, "the grace, and what a busy machine needs to kill"
        await all_succeed(neighbours)
        assert bench.exits == ["timeout"]


@pytest.mark.parametrize("kind", ["blocks", "blocks_in_callback"])
async def test_a_job_that_holds_up_the_loop_is_charged_and_nobody_whose_time_it_took(kind: str) -> None:
    async with pool(**IO, io_stall=0.5) as bench:
        hurried = [bench.begin("nap", {"seconds": 0.1}, seconds=0.3) for _ in range(3)]
        await until_running(bench, 3)
        outcome = await bench.run(kind, 1000, seconds=30)
        assert isinstance(outcome, TimedOut)
        assert "held up the event loop of its child for 0.5 s" in outcome.fault.message
        await all_succeed(hurried)


async def test_a_job_that_holds_up_the_loop_for_a_while_takes_nobody_elses_time() -> None:
    async with pool(**IO) as bench:
        blocking = bench.begin("blocks", 0.8)
        hurried = [bench.begin("nap", {"seconds": 0.1}, seconds=0.5) for _ in range(3)]
        await all_succeed(hurried)
        assert isinstance(await blocking, Succeeded)
    assert bench.exits == ["drain"]


async def test_what_was_sent_to_a_loop_that_is_held_up_goes_to_another_child() -> None:
    async with pool(**IO, io_processes=2, io_concurrency=3) as bench:
        blocking = bench.begin("blocks", 1000)

        async def held_up() -> bool:
            return any(member._mark.who for member in bench.pool._crew.members)

        await eventually(held_up, "a loop that doesn't move")
        async with asyncio.timeout(15):
            await all_succeed(naps(bench, 6, seconds=0))
        assert not blocking.done()
        blocking.cancel()


async def test_what_a_slow_child_did_not_take_goes_to_another_and_it_gets_more_when_it_moves() -> None:
    async with pool(**IO, io_processes=2) as bench:
        slow, other = bench.pool._crew.members
        os.kill(slow.pid, signal.SIGSTOP)
        async with asyncio.timeout(4):
            assert await all_succeed(naps(bench, 4, seconds=0)) == {other.pid}
        os.kill(slow.pid, signal.SIGCONT)

        async def moves() -> bool:
            return slow.pid in await all_succeed(naps(bench, 4, seconds=0.01))

        await eventually(moves, "that it gets jobs again")
        assert bench.exits == []


async def test_a_child_that_is_stopped_is_found_by_the_deadline_of_its_jobs_and_nobody_is_charged() -> None:
    async with pool(**IO) as bench:
        stopped = bench.begin("nap", {"seconds": 0.3}, seconds=1.0)
        await until_running(bench, 1)
        os.kill(bench.pool.pids[0], signal.SIGSTOP)
        started = time.monotonic()
        assert isinstance(await stopped, Succeeded)
        assert 1.0 < time.monotonic() - started < 10
        assert bench.exits == ["timeout"]


async def test_a_cancelled_job_is_told_and_where_it_minds_nothing_its_child_ends(tmp_path: Path) -> None:
    async with pool(**IO) as bench:
        minding = bench.begin("cleans_up", str(tmp_path / "mark"), key="minding")
        await until_running(bench, 1)
        assert bench.pool.cancel("cleans_up", "minding")
        assert await minding == Interrupted("cancelled")
        assert (tmp_path / "mark").read_text() == "cleaned"
        stubborn = bench.begin("swallows_cancel", key="stubborn")
        neighbours = naps(bench)
        await until_running(bench, 6)
        assert bench.pool.cancel("swallows_cancel", "stubborn")
        assert await stubborn == Interrupted("cancelled")
        await all_succeed(neighbours)
        assert bench.exits == ["cancel"]


async def test_children_may_be_killed_while_they_return_large_results() -> None:
    async with pool(**IO, io_processes=2) as bench:
        for _ in range(8):
            jobs = [bench.begin("huge_async", 5_000_000) for _ in range(3)]
            await asyncio.sleep(0)
            for pid in bench.pool.pids:
                os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(15):
                outcomes = await asyncio.gather(*jobs)
            assert all(isinstance(outcome, Succeeded | Crashed) for outcome in outcomes), outcomes
