"""The dead-letter queue in hand, on a real broker: its order is kept whatever is taken out of it, held or stopped."""

import asyncio

import aio_pika
import pytest

from consumer.broker.connection import BrokerConfig
from consumer.broker.deadletters import DeadLetters, dead_letters
from consumer.core.errors import BrokerUnavailable, TopologyError
from tests.support.producer import Producer
from tests.support.rabbit import Rabbit
from tests.support.waiting import eventually

QUEUE = "jobs.default.dead"
MANY = 60
FEW = 8
"""A prefetch that held letters use up again and again."""


async def filled(producer: Producer, count: int = MANY) -> None:
    await producer.channel.declare_queue(
        QUEUE, durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}
    )
    for number in range(count):
        message = aio_pika.Message(str(number).encode(), delivery_mode=2)
        await producer.channel.default_exchange.publish(message, routing_key=QUEUE)


async def order(producer: Producer, count: int) -> list[int]:
    return [int(message.body) for message in await producer.take(QUEUE, count)]


async def held(letters: DeadLetters, count: int) -> list[int]:
    bodies = []
    for _ in range(count):
        taken = await letters.take()
        assert taken is not None
        letters.hold(taken[0])
        bodies.append(int(taken[1].body))
    return bodies


async def rest(letters: DeadLetters) -> list[int]:
    taken = []
    while (letter := await letters.take()) is not None:
        letters.hold(letter[0])
        taken.append(int(letter[1].body))
    return taken


async def test_more_letters_than_the_prefetch_are_held_and_go_back_in_their_order(amqp_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await filled(producer)
        for _ in range(3):
            async with dead_letters(BrokerConfig(amqp_url, "test"), QUEUE, FEW) as letters:
                assert (await letters.depth()).ready == MANY
                assert await rest(letters) == list(range(MANY))
        assert await order(producer, MANY) == list(range(MANY))


async def test_a_large_prefetch_goes_back_in_order_too(amqp_url: str) -> None:
    """Above 32 letters a quorum queue would hash what comes back at once."""
    async with Producer(amqp_url) as producer:
        await filled(producer, 10 * MANY)
        async with dead_letters(BrokerConfig(amqp_url, "test"), QUEUE) as letters:
            assert await held(letters, 5 * MANY) == list(range(5 * MANY))
        assert await order(producer, 10 * MANY) == list(range(10 * MANY))


async def test_what_is_acked_is_gone_and_the_others_keep_their_order(amqp_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await filled(producer)
        async with dead_letters(BrokerConfig(amqp_url, "test"), QUEUE, FEW) as letters:
            while (letter := await letters.take()) is not None:
                tag, message = letter
                if int(message.body) % 3:
                    letters.hold(tag)
                else:
                    letters.ack(tag)
        left = [number for number in range(MANY) if number % 3]
        assert await producer.depth(QUEUE) == len(left)
        assert await order(producer, len(left)) == left


async def test_letters_that_come_while_the_last_acks_go_out_keep_their_places(amqp_url: str) -> None:
    """The broker takes back by itself what it sent to a consumer that is gone, and then it would be the first."""
    async with Producer(amqp_url) as producer:
        await filled(producer)
        for _ in range(6):
            async with dead_letters(BrokerConfig(amqp_url, "test"), QUEUE, FEW) as letters:
                for _ in range(FEW - 1):
                    letter = await letters.take()
                    assert letter is not None
                    letters.ack(letter[0])
        left = list(range(6 * (FEW - 1), MANY))
        assert await order(producer, len(left)) == left


async def test_a_look_that_is_stopped_half_way_leaves_the_order_as_it_was(amqp_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await filled(producer)
        async with dead_letters(BrokerConfig(amqp_url, "test"), QUEUE, FEW) as letters:
            for number in range(MANY // 2):
                assert await held(letters, 1) == [number]
            letters.stop()
            assert len(await rest(letters)) <= FEW
        assert await order(producer, MANY) == list(range(MANY))


async def test_two_who_take_at_once_share_the_letters(amqp_url: str) -> None:
    async def take_all() -> list[int]:
        async with dead_letters(BrokerConfig(amqp_url, "test"), QUEUE, FEW) as letters:
            taken = []
            while (letter := await letters.take()) is not None:
                letters.ack(letter[0])
                taken.append(int(letter[1].body))
            return taken

    async with Producer(amqp_url) as producer:
        await filled(producer)
        one, other = await asyncio.gather(take_all(), take_all())
        assert sorted(one + other) == list(range(MANY))


async def look_until_the_connections_are_closed(rabbit: Rabbit, amqp_url: str) -> None:
    async with dead_letters(BrokerConfig(amqp_url, "test"), QUEUE, FEW) as letters:
        await held(letters, 1)
        rabbit.close_connections()
        await rest(letters)


async def test_a_broker_that_goes_away_is_told(rabbit: Rabbit, amqp_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await filled(producer)
        with pytest.raises(BrokerUnavailable, match=QUEUE):
            await look_until_the_connections_are_closed(rabbit, amqp_url)
    async with Producer(amqp_url) as producer:

        async def back() -> bool:
            return await producer.depth(QUEUE) == MANY

        await eventually(back, "the letters are in the queue again")


async def test_a_queue_that_is_not_there_is_told_with_the_way_out(amqp_url: str) -> None:
    with pytest.raises(TopologyError, match="consumer topology declare"):
        async with dead_letters(BrokerConfig(amqp_url, "test"), "jobs.nosuch.dead") as letters:
            await letters.take()
