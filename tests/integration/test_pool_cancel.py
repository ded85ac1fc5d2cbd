"""Cancelling a run, wherever it is: its outcome is that it was interrupted, and nobody else notices."""

import asyncio
import json
import socket
import time
from contextlib import suppress
from typing import Any

import pytest

from consumer.core.outcome import Interrupted, Succeeded
from tests.support.pools import Bench, pool
from tests.support.waiting import eventually

CANCELLED = Interrupted("cancelled")
CPU: dict[str, Any] = {"modules": ("talking", "stubborn")}


def test_a_run_that_waits_is_over_at_once_and_the_others_stay() -> None:
    async def main() -> None:
        async with pool(**CPU, processes=1, look_ahead=4) as bench:
            running = bench.begin("sleeps_forever", key="running", seconds=20)
            await bench.until(running=1)
            sent = [bench.begin("silent", key=f"sent {n}") for n in range(3)]
            alone = bench.begin("silent", key="alone", alone=True)
            for _ in range(3):
                await asyncio.sleep(0)
            assert bench.pool.cancel("silent", "alone")
            assert await alone == CANCELLED
            assert not bench.pool.cancel("silent", "nobody's")
            assert not bench.pool.cancel("another kind", "sent 1")
            assert bench.pool.cancel("silent", "sent 1")
            assert await sent[1] == CANCELLED
            assert not bench.pool.cancel("silent", "sent 1")
            assert not any(task.done() for task in (running, sent[0], sent[2]))

            assert bench.pool.cancel("sleeps_forever", "running")
            assert await running == CANCELLED
            assert [type(await task) for task in (sent[0], sent[2])] == [Succeeded, Succeeded]
            assert bench.exits == ["cancel"]

    asyncio.run(main())


def test_a_running_job_that_minds_its_cancellation_keeps_its_child() -> None:
    async def main() -> None:
        async with pool(**CPU, processes=1, kill_grace=10.0) as bench:
            pids = bench.pool.pids
            running = bench.begin("minds_its_cancellation", key="it", seconds=20)
            behind = bench.begin("is_never_cancelled", key="behind")
            await bench.until(running=1)
            assert bench.pool.cancel("minds_its_cancellation", "it")
            assert await running == CANCELLED
            outcome = await behind
            assert isinstance(outcome, Succeeded)
            assert json.loads(outcome.result) is False
            assert await bench.result("is_never_cancelled") is False
            assert (bench.pool.pids, bench.exits) == (pids, [])

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["busy", "swallows_exceptions", "ignores_sigterm", "stuck_in_c"])
def test_a_running_job_that_does_not_mind_is_over_after_the_grace_with_its_child(kind: str) -> None:
    async def main() -> None:
        async with pool(**CPU, processes=1, kill_grace=0.2) as bench:
            (pid,) = bench.pool.pids
            running = bench.begin(kind, "nowhere", key="it", seconds=20)
            behind = bench.begin("silent", key="behind")
            await bench.until(running=1)
            began = time.monotonic()
            assert bench.pool.cancel(kind, "it")

            async def over_though_it_is_asked_for_again() -> bool:
                assert not bench.pool.cancel(kind, "it")
                return running.done()

            await eventually(over_though_it_is_asked_for_again, "the end of the run")
            assert await running == CANCELLED
            assert time.monotonic() - began < 5
            assert isinstance(await behind, Succeeded)
            assert pid not in bench.pool.pids
            assert bench.exits == ["cancel"]

    asyncio.run(main())


def test_a_cancelled_job_does_not_come_back_when_its_child_dies() -> None:
    async def main() -> None:
        async with pool(**CPU, processes=1, kill_grace=10.0) as bench:
            running = bench.begin("sleeps_forever", key="it", seconds=20)
            await bench.until(running=1)
            assert bench.pool.cancel("sleeps_forever", "it")
            bench.pool._crew.members[0].kill("crash")
            assert await running == CANCELLED

    asyncio.run(main())


def test_jobs_that_are_cancelled_again_and_again_at_any_moment_hit_no_others() -> None:
    """The wish may come when the job is just over, and its child at the next one: that one must not hear it."""

    async def main() -> None:
        async with pool(**CPU, kill_grace=10.0) as bench:
            others = [bench.begin("is_never_cancelled", key="other") for _ in range(400)]
            victims = []
            for n in range(200):
                victims.append(bench.begin("silent", key=f"victim {n}"))
                for _ in range(n % 7):
                    await asyncio.sleep(0)
                bench.pool.cancel("silent", f"victim {n}")
            outcomes = [await task for task in victims]
            assert all(outcome == CANCELLED or isinstance(outcome, Succeeded) for outcome in outcomes)
            results = [await task for task in others]
            assert {outcome.result for outcome in results if isinstance(outcome, Succeeded)} == {b"false"}
            assert all(isinstance(outcome, Succeeded) for outcome in results)
            assert bench.exits == []

    asyncio.run(main())


async def begun(bench: Bench, count: int) -> None:
    """That many runs have been taken by the only io child."""
    (child,) = bench.pool._crew.members

    async def so() -> bool:
        with suppress(BlockingIOError):
            return not child._tickets._unclaimed.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        return len(child.queue) == count

    await eventually(so, f"{count} runs that have begun")


def test_cancelling_an_async_job_leaves_its_neighbours_in_the_loop_alone() -> None:
    async def main() -> None:
        async with pool(modules=("waiting", "unruly"), kill_grace=0.4) as bench:
            (pid,) = bench.pool.pids
            napping = [bench.begin("nap", {"seconds": 60}, key=f"nap {n}") for n in range(3)]
            flagged = bench.begin("stops_when_cancelled", key="flagged")
            await begun(bench, 4)
            for task, kind, key in ((napping[1], "nap", "nap 1"), (flagged, "stops_when_cancelled", "flagged")):
                assert bench.pool.cancel(kind, key)
                assert await task == CANCELLED
            assert not napping[0].done()
            assert (bench.pool.pids, bench.exits) == ([pid], [])

            stubborn = bench.begin("swallows_cancel", key="stubborn")
            await begun(bench, 3)
            echo = bench.begin("async_echo", "it", key="echo")
            assert bench.pool.cancel("swallows_cancel", "stubborn")
            assert await stubborn == CANCELLED
            assert isinstance(await echo, Succeeded)
            await bench.until_full()
            assert bench.exits == ["cancel"]
            for n in (0, 2):
                assert bench.pool.cancel("nap", f"nap {n}")
                assert await napping[n] == CANCELLED

    asyncio.run(main())
