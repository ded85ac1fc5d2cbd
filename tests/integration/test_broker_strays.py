"""Strays on a real broker: ours go home, those of other queues stay, and a look loses nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from consumer.broker.connection import BrokerConfig
from consumer.broker.declare import Mode
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import Session, open_session
from consumer.broker.strays import AT_ONCE
from consumer.core.delay import Ladder
from consumer.core.errors import PublishFailed
from consumer.core.job import Message
from consumer.core.parcels import Copier
from consumer.core.ports import Parcel
from consumer.core.topology import Topology, build
from tests.support.producer import Producer

LADDER = Ladder("jobs", levels=4)
TOPOLOGY = build("jobs", "default", LADDER, 100)
WORK = TOPOLOGY.work_queue
QUEUES = ("default", "gone.for.good", "other")
EACH = 3 * AT_ONCE + 7


@asynccontextmanager
async def session_of(url: str, topology: Topology, publisher: AmqpPublisher) -> AsyncIterator[Session]:
    session = await open_session(BrokerConfig(url, "test"), topology, Mode.DECLARE, publisher)
    try:
        yield session
    finally:
        await session.close()


async def stray(publisher: AmqpPublisher, each: int = EACH) -> None:
    """As the ladder hands them on, from its last exchange, for three queues in turn."""
    for number in range(each):
        message = Message(b"{}", headers={"x-death": [{"count": 1}], "mine": number})
        await asyncio.gather(
            *(publisher.publish(Parcel(LADDER.stray, LADDER.route(1, queue)[1], message, "retry")) for queue in QUEUES)
        )


async def test_ours_go_home_and_the_others_stay_however_many_they_are(amqp_url: str) -> None:
    publisher, copier = AmqpPublisher(20), Copier(TOPOLOGY, "test")
    async with session_of(amqp_url, TOPOLOGY, publisher) as session, Producer(amqp_url) as producer:
        await stray(publisher)
        found = await session.bring_home(lambda message: publisher.publish(copier.home(message)))
        assert (found.home, found.failure) == (EACH, None)
        assert found.left == {"gone.for.good": EACH, "other": EACH}
        home = await producer.take(WORK, EACH)
        assert {message.headers["mine"] for message in home} == {*range(EACH)}
        assert not any("x-death" in message.headers for message in home)
        assert (await producer.depth(WORK), await producer.depth(LADDER.stray)) == (0, 2 * EACH)
        left = await producer.take(LADDER.stray, 2 * EACH)
        assert {LADDER.destination(message.routing_key or "") for message in left} == {"gone.for.good", "other"}


async def test_what_can_t_be_published_stays_and_is_acked_by_nobody(amqp_url: str) -> None:
    publisher, tried = AmqpPublisher(20), 0

    async def every_other(message: Message) -> None:
        nonlocal tried
        tried += 1
        if tried % 2:
            raise PublishFailed("nobody takes it", "returned")

    async with session_of(amqp_url, TOPOLOGY, publisher) as session, Producer(amqp_url) as producer:
        await stray(publisher, 10)
        found = await session.bring_home(every_other)
        assert (found.home, found.failure) == (5, "nobody takes it")
        assert found.left == {"default": 5, "gone.for.good": 10, "other": 10}
        assert await producer.depth(LADDER.stray) == 25


async def test_a_look_that_is_interrupted_gives_back_all_that_it_had_in_hand(amqp_url: str) -> None:
    publisher, published = AmqpPublisher(20), asyncio.Event()

    async def never_confirmed(_: Message) -> None:
        published.set()
        await asyncio.Event().wait()

    async with session_of(amqp_url, TOPOLOGY, publisher) as session, Producer(amqp_url) as producer:
        await stray(publisher, 10)
        look = asyncio.create_task(session.bring_home(never_confirmed))
        await published.wait()
        look.cancel()
        with pytest.raises(asyncio.CancelledError):
            await look
        await producer.take(LADDER.stray, 30)
        assert not session.ended.done()
