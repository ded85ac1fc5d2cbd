"""A run in this process has the time that one in a child has, and is tidied up after like one."""

import asyncio
import threading
from typing import Any

from consumer import JobContext, JobTimeout, job
from consumer.testing import MemoryDaemon, run


def test_the_time_left_is_that_of_the_timeout_or_of_the_deadline() -> None:
    @job("testing.left", timeout=30)
    def handler(payload: Any, context: JobContext) -> float:
        return context.time_left()

    assert 29 < run(handler, 1).result <= 30
    assert 4 < run(handler, 1, timeout=5).result <= 5
    assert 9 < run(handler, 1, deadline=10).result <= 10


def test_a_handler_that_overruns_its_timeout_is_interrupted_and_may_clean_up() -> None:
    cleaned = []

    @job("testing.forever", max_attempts=2)
    def handler(payload: Any) -> None:
        try:
            threading.Event().wait()
        except Exception:  # noqa: BLE001 - it isn't one
            cleaned.append("swallowed")
        finally:
            cleaned.append("cleaned up")

    outcome = run(handler, 1, timeout=0.05)
    assert (outcome.status, outcome.error) == ("retry", "the job ran longer than its execution timeout of 0.05 s")
    assert isinstance(outcome.exception, JobTimeout)
    assert cleaned == ["cleaned up"]
    assert run(handler, 1, timeout=0.05, attempt=2).code == "execution_timeout"


def test_an_async_handler_that_overruns_is_cancelled() -> None:
    @job("testing.forever", max_attempts=1)
    async def handler(payload: bool) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if payload:
                raise

    for payload in (True, False):
        assert run(handler, payload, timeout=0.05).code == "execution_timeout"


def test_what_an_async_handler_leaves_in_the_loop_is_cancelled() -> None:
    ended = []

    async def leftover() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    @job("leaves")
    async def leaves(payload: Any) -> None:
        left = asyncio.ensure_future(leftover())
        await asyncio.sleep(0)
        assert not left.done()

    with MemoryDaemon(leaves) as daemon:  # whose loop lasts longer than the run
        daemon.publish("leaves", 1)
        daemon.run_until_idle()
        assert ended == ["cancelled"]
        daemon.runs()[0].expect("succeeded")
