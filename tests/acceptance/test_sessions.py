"""Every way of losing the broker ends in recovery within seconds: closed, killed, silent, cancelled, undecodable."""

import asyncio
import time

import pytest

from tests.support.daemon import Daemon, Line
from tests.support.frames import publish_undecodable
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.waiting import eventually

RECOVERY = 5.0
"""Seconds from when the broker's port opens until the daemon consumes."""
HEARTBEAT = 2


async def consumers_are(url: str, wanted: int, within: float = RECOVERY) -> None:
    """As the broker counts them."""
    async with Producer(url) as producer:

        async def so() -> bool:
            return await producer.consumers("jobs.default") == wanted

        await eventually(so, f"the broker knows {wanted} consumers", within)


def ended(line: Line) -> bool:
    return bool(line["event"] == "session ended")


async def does_a_job(url: str, store: str, key: str, total: int) -> None:
    async with Producer(url) as producer:
        await producer.submit("echo", 1, key)
        assert key in await all_are("succeeded", store, total)


async def test_connections_that_an_operator_closes_are_opened_again(
    rabbit: Rabbit, amqp_url: str, sqlite_url: str
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon:
        await daemon.ready()
        for count in (1, 2, 3):
            await asyncio.to_thread(rabbit.close_connections)
            lines = await daemon.logged(ended, count)
            assert (lines[-1]["reason"], "closed by a test" in lines[-1]["detail"]) == ("closed", True)
            await daemon.ready()
            await consumers_are(amqp_url, 1)
            await does_a_job(amqp_url, sqlite_url, f"after-{count}", count)
        assert await daemon.metric("consumer_broker_sessions_total", reason="closed") == 3


async def test_a_broker_that_falls_silent_is_noticed_within_two_heartbeats(amqp_url: str, sqlite_url: str) -> None:
    async with (
        Proxy(amqp_url) as proxy,
        Daemon(settings(proxy.url, sqlite_url, BROKER__HEARTBEAT_SECONDS=str(HEARTBEAT))) as daemon,
    ):
        await daemon.ready()
        proxy.stall()
        started = time.monotonic()
        (line,) = await daemon.logged(ended)
        assert time.monotonic() - started < 2 * HEARTBEAT + 3
        assert line["reason"] == "watchdog"
        assert (await daemon.get("/readyz"))[0] == 503
        assert (await daemon.get("/livez"))[0] == 200
        proxy.cut()
        proxy.flow()
        await daemon.ready()
        await does_a_job(amqp_url, sqlite_url, "after", 1)


async def test_a_short_silence_ends_nothing(amqp_url: str, sqlite_url: str) -> None:
    async with (
        Proxy(amqp_url) as proxy,
        Daemon(settings(proxy.url, sqlite_url, BROKER__HEARTBEAT_SECONDS=str(2 * HEARTBEAT))) as daemon,
    ):
        await daemon.ready()
        proxy.stall()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(daemon.logged(ended), HEARTBEAT)
        assert (await daemon.get("/livez"))[0] == 200
        proxy.flow()
        await does_a_job(amqp_url, sqlite_url, "after", 1)
        assert not any(map(ended, daemon.logs))


async def test_a_broker_that_is_frozen_is_used_again_once_it_thaws(
    rabbit: Rabbit, amqp_url: str, sqlite_url: str
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url, BROKER__HEARTBEAT_SECONDS=str(HEARTBEAT))) as daemon:
        await daemon.ready()
        with rabbit.paused():
            (line,) = await daemon.logged(ended)
            assert line["reason"] in {"watchdog", "heartbeat"}
            assert (await daemon.get("/readyz"))[0] == 503
            assert (await daemon.get("/livez"))[0] == 200
        await daemon.ready()
        await consumers_are(amqp_url, 1)
        await does_a_job(amqp_url, sqlite_url, "after", 1)


async def test_a_deleted_queue_is_declared_again_and_its_jobs_are_done(amqp_url: str, sqlite_url: str) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for count in (1, 2):
            await producer.channel.queue_delete("jobs.default")
            lines = await daemon.logged(ended, count)
            assert lines[-1]["reason"] in ("cancelled", "watchdog"), "whoever sees it first"
            assert "jobs.default" in lines[-1]["detail"]
            await daemon.ready()
            await does_a_job(amqp_url, sqlite_url, f"after-{count}", count)


async def test_a_message_that_can_t_be_decoded_is_moved_out_alone_by_the_delivery_limit(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    """It ends each session that gets it. Its neighbours are not charged, and are done."""
    chosen = settings(amqp_url, sqlite_url, TOPOLOGY__DELIVERY_LIMIT="4")
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("mark", marks.payload, "before")
        await publish_undecodable(amqp_url, "echo", "poison", b"1")
        for number in range(5):
            await producer.submit("mark", marks.payload, f"after-{number}")
        (loud,) = await daemon.logged(lambda line: line["level"] == "error")
        assert loud["reason"] == "undecodable"
        assert (await daemon.get("/livez"))[0] == 200
        found = await all_are("succeeded", sqlite_url, 6, within=30)
        assert {row["attempt"] for row in found.values()} == {1}

        async def is_out() -> bool:
            return await producer.depth("jobs.default.dead") == 1

        await eventually(is_out, "the delivery limit has moved it out", within=30)
        await daemon.ready()
        assert len([line for line in daemon.logs if line["level"] == "error"]) == 1
        assert len([line for line in daemon.logs if ended(line)]) <= 5
