"""The broker sets a limit, by an alarm or by its ack timeout: the daemon pauses or starts anew, and nothing is lost."""

import asyncio
from collections.abc import Callable

import pytest

from tests.support.daemon import Daemon, Line
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rabbit import NEXT, Rabbit
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.waiting import eventually

QUICK = {"BROKER__PUBLISH_TIMEOUT_SECONDS": "1"}


def phase(name: str) -> Callable[[Line], bool]:
    return lambda line: line.get("phase") == name


@pytest.mark.parametrize("alarm", ["memory", "disk"])
async def test_an_alarm_pauses_the_intake_until_it_clears(
    rabbit: Rabbit, amqp_url: str, sqlite_url: str, marks: Marks, alarm: str
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url, **QUICK)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("fails_at_gate", marks.payload, "retried")
        await marks.of("retried")
        with rabbit.alarm(alarm):
            marks.open_gate()
            await daemon.logged(phase("paused"))

            async def is_said() -> bool:
                return "blocked by an alarm" in (await daemon.get("/readyz"))[1]

            await eventually(is_said, "the probe tells of the alarm")
            assert (await daemon.get("/livez"))[0] == 200
            assert await daemon.metric("consumer_broker_blocked") == 1
            received = await daemon.metric("consumer_messages_received_total")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(daemon.logged(phase("consuming"), 2), 3)
            assert await daemon.metric("consumer_messages_received_total") == received
        await daemon.logged(phase("consuming"), 2)
        found = await all_are("succeeded", sqlite_url, 1)
        assert found["retried"]["attempt"] == 2
        assert sum(mark.attempt == 2 for mark in marks.all) == 1
        assert await daemon.metric("consumer_broker_blocked") == 0
        assert await daemon.metric("consumer_broker_sessions_total") == 0, "the session outlives the alarm"
        await daemon.ready()


async def test_a_daemon_that_starts_under_an_alarm_works_as_far_as_it_can(
    rabbit: Rabbit, amqp_url: str, sqlite_url: str
) -> None:
    async with Producer(amqp_url) as producer:
        async with Daemon(settings(amqp_url, sqlite_url)) as daemon:
            await daemon.ready()
            daemon.terminate()
            await daemon.wait()
        await producer.submit("echo", 1, "one")
        with rabbit.alarm("memory"):
            async with Daemon(settings(amqp_url, sqlite_url, **QUICK)) as daemon:
                await daemon.ready()
                await all_are("succeeded", sqlite_url, 1)


async def test_a_job_that_outlasts_the_ack_timeout_runs_once_and_so_do_its_neighbours(
    rabbit: Rabbit, amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    """RabbitMQ 3 closes the channel, 4.3 cancels the consumer."""
    rabbit.evaluate("application:set_env(rabbit, consumer_timeout, 2000)")
    rabbit.evaluate("application:set_env(rabbit, channel_tick_interval, 500)")
    try:
        async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
            await daemon.ready()
            for key in ("one", "two", "three", "four"):
                await producer.submit("wait_for_gate", marks.payload, key)
            await marks.of("one")
            lines = await daemon.logged(lambda line: line["event"] == "session ended", 2)
            assert {line["reason"] for line in lines} == {"cancelled" if NEXT else "channel_closed"}
            assert all(("consumer_timeout" if NEXT else "timed out") in line["detail"] for line in lines)
            marks.open_gate()
            found = await all_are("succeeded", sqlite_url, 4)
            assert {row["attempt"] for row in found.values()} == {1}
            assert sorted(mark.key for mark in marks.all) == ["four", "one", "three", "two"]

            async def is_empty() -> bool:
                return await producer.depth("jobs.default") == 0

            await eventually(is_empty, "the queue is empty")
            daemon.terminate()
            assert await daemon.wait() == 0
            assert await producer.depth("jobs.default") == 0, "all is acked"
            assert await producer.depth("jobs.default.dead") == 0
    finally:
        rabbit.evaluate("application:set_env(rabbit, consumer_timeout, 1800000)")
        rabbit.evaluate("application:set_env(rabbit, channel_tick_interval, 60000)")
