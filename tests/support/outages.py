"""What an outage of the store or of the broker may cost, and what is left after it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.daemon import Daemon, Line
from tests.support.marks import Marks
from tests.support.processes import cpu_seconds
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rows import Row
from tests.support.settings import settings
from tests.support.waiting import eventually

ROUNDS = 3
"""Tries with backoff that an outage outlasts, so that a hot loop would show."""
TRIES = 12
"""Tries with backoff that fit into an outage, and log lines likewise."""
CPU = 0.5
"""Seconds of CPU that an outage may cost."""
PATIENT = {"BROKER__PUBLISH_TIMEOUT_SECONDS": "1", "STORE__LEASE_SECONDS": "3"}


@asynccontextmanager
async def store_behind_proxy(broker: str, store: str, **more: str) -> AsyncIterator[tuple[Proxy, Daemon, Producer]]:
    async with (
        Proxy(store) as proxy,
        consuming(broker, settings(broker, proxy.url, **(PATIENT | more))) as (daemon, producer),
    ):
        yield proxy, daemon, producer


@asynccontextmanager
async def broker_behind_proxy(broker: str, store: str) -> AsyncIterator[tuple[Proxy, Daemon, Producer]]:
    async with Proxy(broker) as proxy, consuming(broker, settings(proxy.url, store, **PATIENT)) as (daemon, producer):
        yield proxy, daemon, producer


@asynccontextmanager
async def consuming(broker: str, chosen: dict[str, str]) -> AsyncIterator[tuple[Daemon, Producer]]:
    """A daemon that is ready, and a producer that no outage reaches."""
    async with Daemon(chosen) as daemon, Producer(broker) as producer:
        await daemon.ready()
        yield daemon, producer


async def begun(kind: str, producer: Producer, marks: Marks) -> None:
    """Return when a job with the key "one" runs, and waits for the gate."""
    await producer.submit(kind, marks.payload, "one")
    await marks.of("one")


@asynccontextmanager
async def calm(daemon: Daemon) -> AsyncIterator[None]:
    """The body is an outage, and goes on for a while: the daemon waits it out, and doesn't spin."""
    tried = sum(tries(line) for line in daemon.logs)
    lines, deliveries, cpu = len(daemon.logs), await received(daemon), cpu_seconds(daemon.pid)
    yield
    await daemon.logged(tries, tried + ROUNDS)
    assert daemon.running
    assert len(daemon.logs) - lines <= 3 * TRIES
    assert await received(daemon) - deliveries <= TRIES
    assert cpu_seconds(daemon.pid) - cpu < CPU
    assert (await daemon.get("/livez"))[0] == 200
    assert (await daemon.get("/readyz"))[0] == 503


def tries(line: Line) -> bool:
    """Something of ours is away, and is tried again later."""
    return "next_try_in_s" in line


async def received(daemon: Daemon) -> float:
    return await daemon.metric("consumer_messages_received_total")


async def nothing_is_left(daemon: Daemon, producer: Producer) -> None:
    async def empty() -> bool:
        return await producer.depth("jobs.default") == 0

    await eventually(empty, "the queue is empty")
    assert await producer.depth("jobs.default.dead") == 0
    assert await daemon.metric("consumer_dead_letters_total") == 0
    daemon.terminate()
    assert await daemon.wait() == 0
    assert await producer.depth("jobs.default") == 0, "all is acked"


def attempts(found: dict[str, Row]) -> dict[str, tuple[int, int]]:
    return {key: (row["attempt"], row["crashes"]) for key, row in found.items()}


def paused(line: Line) -> bool:
    return line.get("phase") == "paused"
