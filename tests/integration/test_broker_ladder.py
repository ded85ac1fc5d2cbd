"""The delay ladder on a real broker: on time, whatever else waits in it, and across a restart."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from consumer.broker.connection import BrokerConfig
from consumer.broker.declare import Mode
from consumer.broker.delivery import AmqpDelivery
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import open_session
from consumer.core.delay import Ladder
from consumer.core.disposition import Retry, Settlement
from consumer.core.job import Fault, Job, Message
from consumer.core.parcels import Copier
from consumer.core.policy import RetryPolicy
from consumer.core.retry import wait_seconds
from consumer.core.rooms import COPIES_AT_ONCE
from consumer.core.topology import build
from schemas import headers
from schemas.codes import Code
from tests.support.producer import Producer
from tests.support.rabbit import NEXT, Rabbit
from tests.support.waiting import eventually

LADDER = Ladder("jobs")
TOPOLOGY = build("jobs", "default", LADDER, 100)
COPIER = Copier(TOPOLOGY, "test")
GONE = Copier(build("jobs", "gone", LADDER, 100), "test")
STRAYS = 200
FAULT = Fault(Code.ATTEMPTS_EXHAUSTED, "E", "no")
BURST = 5_000
LATE = 500 if NEXT else 1_200
"""Milliseconds that 99 of 100 may be late; the older broker moves messages between its queues more slowly."""
SLICE = 200
"""Milliseconds over which arrivals are counted."""


def clock() -> int:
    return time.time_ns() // 1_000_000


class Arrivals:
    """When each copy came back, by key; `last` is set when as many are there as were promised."""

    def __init__(self, promised: int) -> None:
        self.at: dict[str, int] = {}
        self.due: dict[str, int] = {}
        self.complete = asyncio.Event()
        self._promised = promised
        self._acks: set[asyncio.Task[bool]] = set()

    def receive(self, delivery: AmqpDelivery) -> None:
        key = delivery.message.message_id or ""
        self.at.setdefault(key, clock())
        self.due[key] = delivery.message.headers[headers.DUE]
        ack = asyncio.ensure_future(delivery.settle(Settlement.ACK))
        self._acks.add(ack)
        ack.add_done_callback(self._acks.discard)
        if len(self.at) >= self._promised:
            self.complete.set()

    @property
    def lateness(self) -> list[int]:
        return sorted(self.at[key] - self.due[key] for key in self.at)


@asynccontextmanager
async def ladder_of(url: str, arrivals: Arrivals) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """A session that takes what comes back, and how to put off a message by so many seconds, as the processor does."""
    publisher, copying = AmqpPublisher(30), asyncio.Semaphore(COPIES_AT_ONCE)
    session = await open_session(BrokerConfig(url, "test"), TOPOLOGY, Mode.DECLARE, publisher)

    async def put_off(key: str, seconds: float, copier: Copier = COPIER) -> None:
        message = Message(b'{"n": 1}', message_id=key, type="k")
        retry = Retry(2, clock() + round(seconds * 1000), "x", FAULT)
        async with copying:
            await publisher.publish(copier.retry(message, Job("k", key, b""), 1, retry, clock()))

    try:
        await session.consume(arrivals.receive, 1_000, clock)
        yield put_off
    finally:
        await session.close()


@pytest.mark.quiet
async def test_five_thousand_failures_at_the_same_instant_come_back_spread_and_on_time(
    rabbit: Rabbit, amqp_url: str
) -> None:
    arrivals, policy = Arrivals(BURST), RetryPolicy(base=8.0, cap=8.0)
    async with ladder_of(amqp_url, arrivals) as put_off:
        waits = [wait_seconds(policy, 1, None, random.random) for _ in range(BURST)]
        await asyncio.gather(*(put_off(str(number), wait) for number, wait in enumerate(waits)))
        await asyncio.wait_for(arrivals.complete.wait(), 40)
        await eventually(lambda: nothing_waits(rabbit, amqp_url), "the delay queues are empty")
    assert len(arrivals.at) == BURST
    assert arrivals.lateness[0] >= 0, "none is early"
    assert arrivals.lateness[int(BURST * 0.99)] <= LATE
    first, last = min(arrivals.at.values()), max(arrivals.at.values())
    slices = [sum(start <= at < start + SLICE for at in arrivals.at.values()) for start in range(first, last, SLICE)]
    assert max(slices) <= 3 * sum(slices) / len(slices), slices


async def nothing_waits(rabbit: Rabbit, url: str) -> bool:
    """As many queues as were declared, and none of the ladder's holds anything."""
    vhost = url.rpartition("/")[2]
    listed = json.loads(rabbit.ctl("list_queues", "--vhost", vhost, "--formatter", "json", "name", "messages"))
    assert {queue["name"] for queue in listed} == {queue.name for queue in TOPOLOGY.queues}
    return not any(queue["messages"] for queue in listed if ".delay." in queue["name"])


@pytest.mark.quiet
async def test_copies_whose_queue_is_not_there_are_kept_and_hold_up_nobody(amqp_url: str) -> None:
    arrivals = Arrivals(20)
    async with ladder_of(amqp_url, arrivals) as put_off, Producer(amqp_url) as producer:
        await asyncio.gather(*(put_off(f"gone-{number}", 0.7, GONE) for number in range(STRAYS)))
        await asyncio.gather(*(put_off(f"ours-{number}", 1.5) for number in range(20)))
        await asyncio.wait_for(arrivals.complete.wait(), 20)
        kept = await producer.take(LADDER.stray, STRAYS)
    assert arrivals.lateness[-1] < LATE
    assert {message.message_id for message in kept} == {f"gone-{number}" for number in range(STRAYS)}
    assert {LADDER.destination(message.routing_key or "") for message in kept} == {"gone"}


@pytest.mark.quiet
async def test_a_wait_of_a_second_is_not_longer_because_others_wait_for_ten_minutes(amqp_url: str) -> None:
    arrivals = Arrivals(20)
    async with ladder_of(amqp_url, arrivals) as put_off:
        await asyncio.gather(*(put_off(f"long-{number}", 600) for number in range(200)))
        await asyncio.gather(*(put_off(f"short-{number}", 1) for number in range(20)))
        await asyncio.wait_for(arrivals.complete.wait(), 20)
    assert all(key.startswith("short") for key in arrivals.at)
    assert arrivals.lateness[0] >= 0
    assert arrivals.lateness[-1] < 1_000


async def test_waits_survive_a_restart_of_the_broker() -> None:
    with Rabbit() as rabbit:
        url, arrivals = rabbit.vhost(), Arrivals(300)
        async with ladder_of(url, Arrivals(1)) as put_off:
            await asyncio.gather(*(put_off(str(number), 3 + number / 30) for number in range(300)))
        await asyncio.to_thread(rabbit.stop)
        await asyncio.to_thread(rabbit.start)
        async with ladder_of(url, arrivals):
            await asyncio.wait_for(arrivals.complete.wait(), 40)
    assert len(arrivals.at) == 300
    assert arrivals.lateness[0] >= 0
