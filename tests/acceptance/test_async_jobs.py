"""Async handlers end to end: many at a time in one child, and a crash among them."""

import pytest

from tests.support.daemon import Daemon
from tests.support.producer import Producer
from tests.support.rows import all_are, rows
from tests.support.settings import settings
from tests.support.waiting import eventually

pytestmark = pytest.mark.any_broker

MANY = 30


async def test_async_jobs_run_together_and_only_the_one_that_crashes_pays(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url, JOBS__MODULES="ordinary,waiting,unruly", POOL__IO_CONCURRENCY=f"{MANY + 5}")
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        assert await daemon.metric("consumer_children") == 3
        for number in range(MANY):
            await producer.submit("meet", MANY, f"meets-{number}")
        met = await all_are("succeeded", sqlite_url, MANY)
        assert len({row["result"] for row in met.values()}) == 1

        for number in range(MANY):
            await producer.submit("nap", {"seconds": 1}, f"naps-{number}")
        await producer.submit("sleep", {"seconds": 1}, "sleeps")
        await producer.submit("crash_once", "segfault", "crashes")

        async def done() -> bool:
            return [*(row["status"] for row in (await rows(sqlite_url)).values())] == ["succeeded"] * (2 * MANY + 2)

        await eventually(done, "all jobs are done", 30)
        attempts = {key: row["attempt"] for key, row in (await rows(sqlite_url)).items()}
        assert attempts.pop("crashes") == 2
        assert set(attempts.values()) == {1}
        daemon.terminate()
        assert await daemon.wait() == 0
