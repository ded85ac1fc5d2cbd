"""Two daemons share a queue and a store."""

import asyncio

import pytest

from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.waiting import eventually

pytestmark = pytest.mark.any_broker

JOBS = 1000


async def test_jobs_that_are_published_twice_run_once_on_two_daemons(
    amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, postgres_url, POOL__PROCESSES="1")
    async with Daemon(chosen) as one, Daemon(chosen) as two, Producer(amqp_url) as producer:
        await asyncio.gather(one.ready(), two.ready())
        keys = [f"job-{number}" for number in range(JOBS)]
        await asyncio.gather(*(producer.submit("mark", marks.payload, key) for key in keys for _ in range(2)))

        async def all_settled() -> bool:
            return sum([await daemon.metric("consumer_jobs_settled_total") for daemon in (one, two)]) >= 2 * JOBS

        await eventually(all_settled, "every delivery is settled", within=60)
        found = await all_are("succeeded", postgres_url, JOBS)
        assert {key: row["result"] for key, row in found.items()} == {key: f'"{key}"' for key in keys}
        assert sorted(mark.key for mark in marks.all) == sorted(keys), "one execution each"
        assert len({mark.pid for mark in marks.all}) == 2, "both took part"
        for daemon in (one, two):
            daemon.terminate()
            assert await daemon.wait() == 0
        assert await producer.depth("jobs.default") == 0
        assert await producer.depth("jobs.default.dead") == 0
