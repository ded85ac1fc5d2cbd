"""Retries whose work queue is deleted while they wait: none is lost, and no neighbour of theirs is late."""

import asyncio
import os
import signal

import pytest

from tests.support.daemon import Daemon, Line
from tests.support.producer import Producer
from tests.support.rows import rows
from tests.support.settings import settings
from tests.support.waiting import eventually

JOBS = 40
"""More than a rung of the ladder has under way."""
NEIGHBOURS = 10
LATE = 2_000
"""Milliseconds. Behind a rung that is held up it would be minutes."""


@pytest.mark.quiet
async def test_retries_whose_queue_was_deleted_succeed_and_those_of_its_neighbour_are_on_time(
    amqp_url: str, postgres_url: str
) -> None:
    ours = settings(amqp_url, postgres_url, KINDS='{"flaky": {"backoff_seconds": 8}}')
    theirs = settings(amqp_url, postgres_url, QUEUE="other")
    async with Daemon(ours) as daemon, Daemon(theirs) as neighbour, Producer(amqp_url) as producer:
        await asyncio.gather(daemon.ready(), neighbour.ready())
        await asyncio.gather(*(producer.submit("flaky", 1, f"ours-{number}") for number in range(JOBS)))
        await daemon.logged(is_retry, JOBS)
        os.kill(daemon.pid, signal.SIGSTOP)  # else it would declare its queue again at once
        await producer.channel.queue_delete("jobs.default")
        await eventually(lambda: holds(producer, "jobs.delay.v1.stray", JOBS), "all copies are strays")
        await asyncio.gather(
            *(producer.submit("flaky", 1, f"theirs-{number}", queue="other") for number in range(NEIGHBOURS))
        )
        await eventually(lambda: succeeded(postgres_url, NEIGHBOURS), "the neighbour's jobs are done")
        os.kill(daemon.pid, signal.SIGCONT)
        await daemon.logged(lambda line: line.get("event") == "strays brought home" and line["count"] == JOBS)
        await eventually(lambda: succeeded(postgres_url, NEIGHBOURS + JOBS), "all jobs are done")
        assert await producer.depth("jobs.delay.v1.stray") == 0
    found = await rows(postgres_url)
    assert {row["attempt"] for row in found.values()} == {2}
    due = {line["key"]: line["due_ms"] for line in neighbour.logs if is_retry(line)}
    lateness = [found[key]["started_at"] - due[key] for key in due]
    assert len(lateness) == NEIGHBOURS
    assert max(lateness) < LATE, lateness


def is_retry(line: Line) -> bool:
    return line.get("disposition") == "retry"


async def holds(producer: Producer, queue: str, count: int) -> bool:
    return await producer.depth(queue) == count


async def succeeded(url: str, number: int) -> bool:
    return [row["status"] for row in (await rows(url)).values()].count("succeeded") == number
