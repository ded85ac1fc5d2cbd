"""A burst of failures comes back spread over its window, on time, and through the same queues."""

import asyncio
import json
import os
from collections import Counter

import pytest

from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rabbit import Rabbit
from tests.support.rows import all_are
from tests.support.settings import settings

JOBS = int(os.environ.get("CONSUMER_TEST_BURST", "1000"))
"""`make faults` has 3,000 of them."""
BACKOFF = JOBS / 90
"""Seconds, of which equal jitter takes off up to a half: by the time the first retries are due the last jobs have
failed, so that no retry waits behind a first attempt."""
WINDOW = (round(BACKOFF * 500), round(BACKOFF * 1000))
"""Milliseconds from a failure to its retry."""
SLICES = 8
LATE = 1_000
CLOCKS = 2
"""Milliseconds: two processes cut the time to whole ones, each its own."""


@pytest.mark.quiet
async def test_a_burst_of_failures_comes_back_spread_over_its_window_and_on_time(
    rabbit: Rabbit, amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    kinds = f'{{"fails_first": {{"backoff_seconds": {BACKOFF}}}}}'
    chosen = settings(amqp_url, postgres_url, BROKER__PREFETCH="50", KINDS=kinds, TOPOLOGY__DELAY_LEVELS="18")
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        before = queues(rabbit, amqp_url)
        await asyncio.gather(
            *(producer.submit("fails_first", marks.payload, f"job-{number}") for number in range(JOBS))
        )
        found = await all_are("succeeded", postgres_url, JOBS, within=55)
        assert {row["attempt"] for row in found.values()} == {2}
        assert len(marks.all) == 2 * JOBS
        assert await producer.depth("jobs.default.dead") == 0
        assert queues(rabbit, amqp_url) == before
    failed = {mark.key: mark.at for mark in marks.all if mark.attempt == 1}
    back = {mark.key: mark.at for mark in marks.all if mark.attempt == 2}
    due = {line["key"]: line["due_ms"] for line in daemon.logs if line.get("disposition") == "retry"}
    spread([due[key] - failed[key] for key in due])
    lateness = sorted(back[key] - due[key] for key in due)
    assert lateness[0] >= -CLOCKS, "none is early"
    assert lateness[int(JOBS * 0.99)] < LATE, f"all had failed within {max(failed.values()) - min(failed.values())} ms"


def spread(waits: list[int]) -> None:
    assert min(waits) >= WINDOW[0]
    assert max(waits) <= WINDOW[1] + LATE, "the wait counts from when the failure was known, a little later"
    slices = Counter((wait - WINDOW[0]) * SLICES // (WINDOW[1] - WINDOW[0]) for wait in waits)
    assert min(slices[number] for number in range(SLICES)) > JOBS / SLICES / 2, f"jitter uses the window, not {slices}"


def queues(rabbit: Rabbit, url: str) -> list[str]:
    """The names of all queues of a virtual host."""
    listed = rabbit.ctl("list_queues", "--vhost", url.rpartition("/")[2], "--formatter", "json", "name")
    return sorted(queue["name"] for queue in json.loads(listed))
