"""Sessions on a real broker: consuming within the prefetch, settling once, and every way in which one ends."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest

from consumer.broker.connection import BrokerConfig
from consumer.broker.declare import Mode
from consumer.broker.delivery import AmqpDelivery
from consumer.broker.line import CLOSE_TIMEOUT
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import Session, open_session
from consumer.core.delay import Ladder
from consumer.core.disposition import Settlement
from consumer.core.errors import BrokerRefused, BrokerUnavailable, PublishFailed
from consumer.core.job import Message
from consumer.core.ports import Parcel
from consumer.core.topology import build
from tests.support.processes import open_files
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.waiting import eventually, free_port

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=6), 100)


@asynccontextmanager
async def session_of(url: str) -> AsyncIterator[Session]:
    session = await open_session(BrokerConfig(url, "test"), TOPOLOGY, Mode.DECLARE, AmqpPublisher(5))
    try:
        yield session
    finally:
        await session.close()


class Inbox:
    def __init__(self) -> None:
        self._queue: asyncio.Queue[AmqpDelivery] = asyncio.Queue()
        self.receive = self._queue.put_nowait

    async def take(self, count: int) -> list[AmqpDelivery]:
        return [await self._queue.get() for _ in range(count)]

    @property
    def empty(self) -> bool:
        return self._queue.empty()


def clock() -> int:
    return 42


async def test_no_more_than_the_prefetch_is_ever_unsettled(amqp_url: str) -> None:
    inbox = Inbox()
    async with session_of(amqp_url) as session, Producer(amqp_url) as producer:
        for number in range(5):
            await producer.submit("k", number, f"id-{number}")
        await session.consume(inbox.receive, 2, clock)
        first, _ = await inbox.take(2)
        assert (await session.depths(["jobs.default"]))["jobs.default"].ready == 3  # type: ignore[union-attr]
        assert inbox.empty
        await first.settle(Settlement.ACK)
        [third] = await inbox.take(1)
        assert (third.message.message_id, third.received_at) == ("id-2", 42)


async def test_what_is_acked_is_gone_and_what_is_released_comes_back_marked(amqp_url: str) -> None:
    inbox = Inbox()
    async with session_of(amqp_url) as session, Producer(amqp_url) as producer:
        await producer.submit("k", 1, "kept")
        await producer.submit("k", 2, "released")
        await session.consume(inbox.receive, 10, clock)
        kept, released = await inbox.take(2)
        assert await kept.settle(Settlement.ACK)
        assert await released.settle(Settlement.RELEASE)
        [again] = await inbox.take(1)
        assert (again.message.message_id, again.redelivered) == ("released", True)
        await again.settle(Settlement.ACK)
        await session.close()
        assert await producer.depth("jobs.default") == 0


async def test_settling_a_delivery_twice_is_refused_before_the_broker_hears_of_it(amqp_url: str) -> None:
    inbox = Inbox()
    async with session_of(amqp_url) as session, Producer(amqp_url) as producer:
        await producer.submit("k", 1, "a")
        await session.consume(inbox.receive, 10, clock)
        [delivery] = await inbox.take(1)
        await delivery.settle(Settlement.ACK)
        with pytest.raises(RuntimeError, match="settled once"):
            await delivery.settle(Settlement.RELEASE)
        assert not session.ended.done()


async def test_a_delivery_whose_channel_is_gone_says_so_and_is_delivered_again(amqp_url: str) -> None:
    inbox = Inbox()
    async with Producer(amqp_url) as producer:
        async with session_of(amqp_url) as session:
            await producer.submit("k", 1, "a")
            await session.consume(inbox.receive, 10, clock)
            [lost] = await inbox.take(1)
        assert not await lost.settle(Settlement.ACK)
        async with session_of(amqp_url) as session:
            await session.consume(inbox.receive, 10, clock)
            [again] = await inbox.take(1)
            assert again.redelivered


async def test_cancelling_stops_deliveries_and_those_in_hand_can_still_be_acked(amqp_url: str) -> None:
    inbox = Inbox()
    async with session_of(amqp_url) as session, Producer(amqp_url) as producer:
        await producer.submit("k", 1, "in hand")
        await session.consume(inbox.receive, 10, clock)
        [delivery] = await inbox.take(1)
        await session.cancel()
        await producer.submit("k", 2, "later")
        assert await delivery.settle(Settlement.ACK)
        await eventually(lambda: is_depth(producer, 1), "the later one stays in the queue")
        assert inbox.empty
        await session.consume(inbox.receive, 10, clock)
        [later] = await inbox.take(1)
        assert later.message.message_id == "later"


async def is_depth(producer: Producer, wanted: int) -> bool:
    return await producer.depth("jobs.default") == wanted


async def test_a_connection_that_the_broker_closes_ends_the_session(rabbit: Rabbit, amqp_url: str) -> None:
    async with session_of(amqp_url) as session:
        rabbit.close_connections()
        ended = await session.ended
        assert ended.reason == "closed"
        assert "closed by a test" in ended.detail


async def test_a_deleted_queue_ends_the_session_as_cancelled(amqp_url: str) -> None:
    async with session_of(amqp_url) as session, Producer(amqp_url) as producer:
        await session.consume(Inbox().receive, 10, clock)
        await producer.channel.queue_delete("jobs.default")
        assert (await session.ended).reason == "cancelled"


async def test_a_cut_connection_ends_the_session(amqp_url: str) -> None:
    async with Proxy(amqp_url) as proxy, session_of(proxy.url) as session:
        proxy.cut()
        assert (await session.ended).reason == "closed"


async def test_a_broker_that_is_silent_under_a_large_message_is_hung_up_on(amqp_url: str) -> None:
    """The client itself would wait for ever for the rest of the message to get out."""
    publisher, large = AmqpPublisher(0.5), Message(bytes(40_000_000), message_id="large")
    async with Proxy(amqp_url) as proxy:
        files = open_files(os.getpid())
        session = await open_session(BrokerConfig(proxy.url, "test"), TOPOLOGY, Mode.DECLARE, publisher)
        proxy.stall()
        with pytest.raises(PublishFailed):
            await publisher.publish(Parcel("jobs", "default", large, "retry"))
        session.end("watchdog", "it does not answer")
        async with asyncio.timeout(2 * CLOSE_TIMEOUT):
            await session.close()
        proxy.cut()
        proxy.flow()

        async def all_closed() -> bool:
            return open_files(os.getpid()) <= files

        await eventually(all_closed, "nothing is open any more")


async def test_depths_tell_missing_queues_from_empty_ones(amqp_url: str) -> None:
    async with session_of(amqp_url) as session, Producer(amqp_url) as producer:
        await producer.submit("k", 1, "a")
        await eventually(lambda: is_depth(producer, 1), "the message is there")
        depths = await session.depths(["no.such", "jobs.default", "jobs.default.dead"])
        assert depths["no.such"] is None
        assert (depths["jobs.default"].ready, depths["jobs.default"].consumers) == (1, 0)  # type: ignore[union-attr]
        assert depths["jobs.default.dead"].ready == 0  # type: ignore[union-attr]
        assert not session.ended.done()


async def test_a_broker_that_is_not_there_is_one_sentence_without_the_password() -> None:
    url = f"amqp://user:S3cr3t@127.0.0.1:{free_port()}/"
    with pytest.raises(BrokerUnavailable, match=r"no connection to the broker at 127\.0\.0\.1") as away:
        async with session_of(url):
            pass
    assert "S3cr3t" not in str(away.value)
    assert not isinstance(away.value, BrokerRefused)


async def test_a_wrong_password_is_told_from_a_broker_that_is_away(amqp_url: str) -> None:
    with pytest.raises(BrokerRefused, match="refused user or password"):
        async with session_of(amqp_url.replace("guest:guest", "guest:wrong")):
            pass


async def test_any_characters_work_in_password_and_vhost(rabbit: Rabbit) -> None:
    user, password, vhost = "odd", "p#a/s@s:%41 ü", "a/b c"
    rabbit.ctl("add_user", user, password)
    rabbit.ctl("add_vhost", vhost)
    rabbit.ctl("set_permissions", "-p", vhost, user, ".*", ".*", ".*")
    url = f"amqp://{user}:{quote(password, safe='')}@127.0.0.1:{rabbit.port}/{quote(vhost, safe='')}"
    try:
        async with session_of(url) as session:
            assert not session.ended.done()
    finally:
        rabbit.ctl("delete_vhost", vhost)
