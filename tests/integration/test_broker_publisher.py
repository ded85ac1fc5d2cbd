"""Publishing on a real broker: confirmed, returned, timed out, and what copies look like on the wire."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aio_pika
import pytest

from consumer.broker.connection import BrokerConfig
from consumer.broker.declare import Mode
from consumer.broker.delivery import AmqpDelivery
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import Session, open_session
from consumer.core.delay import Ladder
from consumer.core.errors import PublishFailed
from consumer.core.job import Message
from consumer.core.ports import Parcel
from consumer.core.topology import build
from tests.support.producer import Producer
from tests.support.rabbit import Rabbit

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=6), 100)


@asynccontextmanager
async def session_of(url: str, publisher: AmqpPublisher) -> AsyncIterator[Session]:
    session = await open_session(BrokerConfig(url, "test"), TOPOLOGY, Mode.DECLARE, publisher)
    try:
        yield session
    finally:
        await session.close()


def to_work(message: Message) -> Parcel:
    return Parcel("jobs", "default", message, "submit")


async def received(session: Session, count: int = 1) -> list[AmqpDelivery]:
    arrived: asyncio.Queue[AmqpDelivery] = asyncio.Queue()
    await session.consume(arrived.put_nowait, 100, lambda: 7)
    return [await arrived.get() for _ in range(count)]


async def test_a_confirmed_message_keeps_body_properties_and_headers_and_is_persistent(amqp_url: str) -> None:
    publisher = AmqpPublisher(5)
    original = Message(
        b"\x00\xff",
        {"tenant": "t", "n": 2**40, "deep": {"list": [1, "a"]}},
        content_type="application/json",
        type="k",
        message_id="id",
        correlation_id="c",
        reply_to="r",
        app_id="app",
        priority=3,
        timestamp_ms=1_700_000_000_000,
    )
    async with session_of(amqp_url, publisher), Producer(amqp_url) as reader:
        await publisher.publish(to_work(original))
        [raw] = await reader.take("jobs.default")
    assert raw.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
    assert (raw.body, raw.type, raw.message_id, raw.priority) == (b"\x00\xff", "k", "id", 3)
    assert raw.headers == original.headers
    assert raw.timestamp == datetime.fromtimestamp(1_700_000_000, UTC)


@pytest.mark.parametrize("number", [127, 128, 32768, 65536, 2**31, 2**63 - 1, -(2**63), 2**63, -1])
async def test_a_copy_can_be_written_whatever_a_foreign_header_holds(amqp_url: str, number: int) -> None:
    publisher = AmqpPublisher(5)
    table: dict[str, Any] = {"n": number, "inner": {"n": number, "many": [number]}, "none": None, "flag": True}
    async with session_of(amqp_url, publisher) as session:
        await publisher.publish(to_work(Message(b"1", table, message_id="id")))
        [delivery] = await received(session)
        assert delivery.message.headers["flag"] is True
        assert str(delivery.message.headers["n"]) == str(number)


async def test_a_message_without_an_id_comes_back_without_one(amqp_url: str) -> None:
    publisher = AmqpPublisher(5)
    async with session_of(amqp_url, publisher) as session:
        await publisher.publish(to_work(Message(b"1", {"mine": 1})))
        [delivery] = await received(session)
    assert delivery.message.message_id is None
    assert delivery.message.headers == {"mine": 1}


async def test_a_message_that_no_queue_takes_is_a_failure_and_not_a_success(amqp_url: str) -> None:
    seen: list[tuple[str, str]] = []
    publisher = AmqpPublisher(5, lambda target, result: seen.append((target, result)))
    async with session_of(amqp_url, publisher):
        with pytest.raises(PublishFailed, match="no queue takes messages for exchange jobs") as failure:
            await publisher.publish(Parcel("jobs", "nowhere", Message(b"1", message_id="a"), "retry"))
    assert failure.value.result == "returned"
    assert seen == [("retry", "returned")]


async def test_two_messages_of_one_id_at_once_each_hear_their_own_fate(amqp_url: str) -> None:
    publisher = AmqpPublisher(5)
    async with session_of(amqp_url, publisher):
        fates = await asyncio.gather(
            *(
                publisher.publish(Parcel("jobs", key, Message(b"1", message_id="same"), "retry"))
                for key in ("nowhere", "default", "nowhere")
            ),
            return_exceptions=True,
        )
    assert [isinstance(fate, PublishFailed) for fate in fates] == [True, False, True]


async def test_publishing_to_a_missing_exchange_fails_and_the_session_is_over(amqp_url: str) -> None:
    publisher = AmqpPublisher(5)
    async with session_of(amqp_url, publisher) as session:
        with pytest.raises(PublishFailed):
            await publisher.publish(Parcel("missing", "x", Message(b"1", message_id="a"), "retry"))
        assert (await session.ended).reason == "channel_closed"
        with pytest.raises(PublishFailed, match="the broker is away"):
            await publisher.publish(to_work(Message(b"1", message_id="b")))


async def test_a_broker_that_does_not_answer_is_a_timeout_whose_message_may_have_landed(
    rabbit: Rabbit, amqp_url: str
) -> None:
    publisher = AmqpPublisher(0.5)
    async with session_of(amqp_url, publisher):
        with rabbit.paused(), pytest.raises(PublishFailed) as failure:
            await publisher.publish(to_work(Message(b"1", message_id="a")))
        assert failure.value.result == "timeout"
        async with Producer(amqp_url) as reader:
            [landed] = await reader.take("jobs.default")
            assert landed.message_id == "a"


async def test_a_memory_alarm_shows_as_blocked_and_a_publish_ends_with_its_deadline(
    rabbit: Rabbit, amqp_url: str
) -> None:
    publisher = AmqpPublisher(1)
    async with session_of(amqp_url, publisher) as session:
        assert not await session.blocked()
        with rabbit.alarm("memory"):
            with pytest.raises(PublishFailed) as failure:
                await publisher.publish(to_work(Message(b"1", message_id="a")))
            assert failure.value.result == "timeout"
            assert await session.blocked()
        await publisher.publish(to_work(Message(b"1", message_id="b")))
        assert not await session.blocked()
