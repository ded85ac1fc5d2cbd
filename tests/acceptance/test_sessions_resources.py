"""What sessions cost: nothing stays behind when they end, and waiting is nearly free."""

import asyncio
import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from consumer.broker.connection import BrokerConfig
from consumer.broker.declare import Mode
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import Session, open_session
from consumer.core import streak
from consumer.core.delay import Ladder
from consumer.core.policy import RetryPolicy
from consumer.core.topology import build
from consumer.supervisor import Supervisor
from tests.support.daemon import Daemon
from tests.support.processes import cpu_seconds, open_files, resident_bytes
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.settings import settings

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4), 100)
WARM_UP, CLOSES = 20, 200
MEMORY = 1.1
WINDOW = 5.0
"""Seconds of measuring CPU."""
CLOSE_ALL = '[rabbit_networking:close_connection(C, "closed by a test") || C <- rabbit_networking:connections()]'
CHANNELS = "length(rabbit_channel:list())"


class Door:
    """Of a pool that has nothing to do."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Listener:
    """Counts how often the supervisor consumed."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    async def consumed(self, count: int) -> None:
        while self.count < count:
            self._changed.clear()
            await self._changed.wait()

    def consuming(self) -> None:
        self.count += 1
        self._changed.set()

    def connected(self) -> None: ...
    def paused(self, why: str) -> None: ...
    def blocked(self, blocked: bool) -> None: ...
    def session_ended(self, reason: str, detail: str) -> None: ...


@asynccontextmanager
async def supervised(url: str) -> AsyncIterator[Listener]:
    """Sessions one after the other, as in the daemon, but in this process."""
    publisher, listener = AmqpPublisher(5), Listener()

    async def open_one() -> Session:
        return await open_session(BrokerConfig(url, "test"), TOPOLOGY, Mode.DECLARE, publisher)

    async def consume(session: Session, careful: bool) -> None:
        await session.consume(lambda _: None, 10, lambda: 0)

    async def probe() -> None: ...

    supervisor = Supervisor(open_one, consume, probe, Door(), listener, lambda: 0.0)
    running = asyncio.create_task(supervisor.run())
    try:
        yield listener
    finally:
        supervisor.stop()
        await running
        if supervisor.session is not None:
            await supervisor.session.close()


async def test_200_closed_connections_leave_no_memory_no_channels_and_no_files_behind(
    rabbit: Rabbit, amqp_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "aiormq")  # as in the daemon; pytest would keep each traceback
    monkeypatch.setattr(streak, "LOST", RetryPolicy(base=0.01, cap=0.01))

    def measured() -> tuple[int, int, str]:
        gc.collect()
        return resident_bytes(os.getpid()), open_files(os.getpid()), rabbit.evaluate(CHANNELS)

    async with supervised(amqp_url) as listener:
        for number in range(1, WARM_UP + CLOSES + 1):
            await listener.consumed(number)
            if number == WARM_UP:
                memory, files, channels = measured()
            await asyncio.to_thread(rabbit.evaluate, CLOSE_ALL)
        await listener.consumed(WARM_UP + CLOSES + 1)
        memory_then, files_then, channels_then = measured()
    assert memory_then <= memory * MEMORY
    assert (files_then, channels_then) == (files, channels)


async def cpu_share(daemon: Daemon) -> float:
    """CPU of the daemon and its children over a while, as a share of one CPU."""
    family = [daemon.pid, *daemon.children]
    before = sum(map(cpu_seconds, family))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(daemon.logged(lambda line: line.get("phase") == "stopped"), WINDOW)
    return (sum(map(cpu_seconds, family)) - before) / WINDOW


@pytest.mark.any_broker
async def test_an_idle_daemon_needs_less_than_one_percent_of_a_cpu(amqp_url: str, sqlite_url: str) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon:
        await daemon.ready()
        assert await cpu_share(daemon) < 0.01


@pytest.mark.any_broker
async def test_a_daemon_whose_broker_is_away_needs_less_than_two_percent(amqp_url: str, sqlite_url: str) -> None:
    async with Proxy(amqp_url) as proxy, Daemon(settings(proxy.url, sqlite_url)) as daemon:
        await daemon.ready()
        proxy.refuse()
        proxy.cut()
        await daemon.logged(lambda line: line["event"] == "no session with the broker")
        assert await cpu_share(daemon) < 0.02
