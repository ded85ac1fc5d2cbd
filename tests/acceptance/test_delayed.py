"""Jobs that are submitted for later."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.command import consumer
from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rows import all_are, rows
from tests.support.settings import settings


async def test_a_job_submitted_for_later_than_the_ladder_reaches_is_run_at_its_time_and_not_swept_meanwhile(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    short_ladder = {"TOPOLOGY__DELAY_LEVELS": "4"}  # 1.5 s, so that each copy goes round three times
    chosen = settings(amqp_url, sqlite_url, STORE__SWEEP_SECONDS="0.5", STORE__STUCK_GRACE_SECONDS="2", **short_ladder)
    payload = f'{{"marks": "{marks.payload["marks"]}"}}'
    for key in ("delay", "at"):
        at = (datetime.now(UTC) + timedelta(seconds=5)).isoformat()
        options = ("--delay", "5s") if key == "delay" else ("--at", at)
        done = await consumer("submit", "mark", payload, "--key", key, *options, settings=chosen)
        assert (done.code, done.err) == (0, ""), done
    due = {key: row["due_at"] for key, row in (await rows(sqlite_url)).items()}
    async with Daemon(chosen) as daemon:
        await all_are("succeeded", sqlite_url, 2)
        for key, moment in due.items():
            (mark,) = await marks.of(key)
            assert moment - 100 <= mark.at < moment + 5_000
        assert await daemon.metric("consumer_publishes_total", target="submit", result="confirmed") == 0


@pytest.mark.any_broker
async def test_a_deadline_travels_with_its_job(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    done = await consumer("submit", "echo", "1", "--key", "a", "--deadline", "2h", settings=chosen)
    assert (done.code, done.err) == (0, ""), done
    async with Producer(amqp_url) as producer:
        (message,) = await producer.take("jobs.default")
        deadline = message.headers["deadline-ms"]
        assert isinstance(deadline, int)
        assert 7_100_000 < deadline - time.time_ns() // 1_000_000 <= 7_200_000
