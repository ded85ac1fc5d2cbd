"""Submitted jobs outlive their messages, and rows don't outlive their time."""

import json

import pytest

from tests.support.command import consumer
from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rows import all_are, rows
from tests.support.settings import settings
from tests.support.waiting import eventually

pytestmark = pytest.mark.any_broker

SWEEPS = {"STORE__SWEEP_SECONDS": "0.5", "STORE__STUCK_GRACE_SECONDS": "1", "STORE__LEASE_SECONDS": "3"}


async def submit(chosen: dict[str, str], marks: Marks) -> None:
    done = await consumer("submit", "wait_for_gate", json.dumps(marks.payload), "--key", "a", settings=chosen)
    assert done.code == 0, done.err


async def lose_the_message(url: str) -> None:
    """As a broker does that loses its disk."""
    async with Producer(url) as producer:

        async def is_there() -> bool:
            return await producer.depth("jobs.default") == 1

        await eventually(is_there, "the message is ready")
        await (await producer.channel.get_queue("jobs.default")).purge()


async def test_a_submitted_job_whose_message_was_lost_is_published_again_and_forgotten_after_its_time(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, sqlite_url, **SWEEPS, STORE__RETENTION_SECONDS="3")
    await submit(chosen, marks)
    await lose_the_message(amqp_url)
    marks.open_gate()
    async with Daemon(chosen) as daemon:
        await all_are("succeeded", sqlite_url, 1)
        assert len(marks.all) == 1
        (line,) = await daemon.logged(lambda line: line["event"] == "jobs published again")
        assert (line["count"], line["some"]) == (1, ["wait_for_gate a"])

        async def is_forgotten() -> bool:
            return await rows(sqlite_url) == {}

        await eventually(is_forgotten, "the row is pruned")
        assert await daemon.metric("consumer_store_stuck_jobs", status="pending") == 0


async def test_a_job_that_died_with_its_daemon_and_its_message_is_run_by_another(
    amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, postgres_url, **SWEEPS)
    async with Daemon(chosen) as first:
        await submit(chosen, marks)
        await marks.of("a")
        first.kill()
        await first.wait()
    await lose_the_message(amqp_url)
    marks.open_gate()
    async with Daemon(chosen) as second:
        found = await all_are("succeeded", postgres_url, 1)
        assert (found["a"]["attempt"], found["a"]["crashes"]) == (1, 1)
        assert len(await marks.of("a", 2)) == 2
        assert await second.metric("consumer_publishes_total", target="submit", result="confirmed") == 1
