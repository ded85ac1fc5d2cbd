"""The broker is killed: it is in use again within seconds of its return, nothing is lost, and nobody is charged."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests.acceptance.test_sessions import RECOVERY, consumers_are, does_a_job, ended
from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.outages import PATIENT, calm, nothing_is_left, paused
from tests.support.producer import Producer
from tests.support.rabbit import Rabbit
from tests.support.rows import all_are
from tests.support.settings import settings


@pytest.fixture(scope="module")
def node() -> Iterator[Rabbit]:
    """A node that is killed."""
    with Rabbit() as rabbit:
        yield rabbit


async def test_a_broker_that_is_killed_again_and_again_is_back_in_use_within_seconds(
    node: Rabbit, sqlite_url: str
) -> None:
    url = node.vhost()
    async with Daemon(settings(url, sqlite_url)) as daemon:
        await daemon.ready()
        for count in (1, 2):
            await asyncio.to_thread(node.kill)
            await daemon.logged(ended, count)
            assert (await daemon.get("/readyz"))[0] == 503
            await asyncio.to_thread(node.start)
            await consumers_are(url, 1)
            await does_a_job(url, sqlite_url, f"after-{count}", count)
            await daemon.ready()


async def test_a_broker_that_is_killed_with_a_backlog_gives_all_of_it_back(
    node: Rabbit, sqlite_url: str, marks: Marks
) -> None:
    url = node.vhost()
    async with Daemon(settings(url, sqlite_url, POOL__PROCESSES="1")) as daemon:
        await daemon.ready()
        async with Producer(url) as producer:
            await producer.submit("wait_for_gate", marks.payload, "running")
            for number in range(100):
                await producer.submit("mark", marks.payload, f"job-{number}")
        await marks.of("running")
        await asyncio.to_thread(node.kill)
        marks.open_gate()
        await asyncio.to_thread(node.start)
        started = time.monotonic()
        await consumers_are(url, 1)
        found = await all_are("succeeded", sqlite_url, 101)
        assert time.monotonic() - started < 3 * RECOVERY
        assert {row["attempt"] for row in found.values()} == {1}
        assert {mark.key for mark in marks.all} == found.keys()


async def test_a_broker_that_is_killed_while_a_job_runs_costs_nobody_an_attempt(
    node: Rabbit, sqlite_url: str, marks: Marks
) -> None:
    url = node.vhost()
    async with Daemon(settings(url, sqlite_url, **PATIENT)) as daemon:
        await daemon.ready()
        async with Producer(url) as producer:
            await producer.submit("fails_at_gate", marks.payload, "running")
            await marks.of("running")
            for key in ("next", "after"):
                await producer.submit("wait_for_gate", marks.payload, key)
            await asyncio.to_thread(node.kill)
        async with calm(daemon):
            marks.open_gate()
            await daemon.logged(paused)
        await asyncio.to_thread(node.start)
        found = await all_are("succeeded", sqlite_url, 3)
        assert {key: row["attempt"] for key, row in found.items()} == {"running": 2, "next": 1, "after": 1}
        async with Producer(url) as producer:
            await nothing_is_left(daemon, producer)
