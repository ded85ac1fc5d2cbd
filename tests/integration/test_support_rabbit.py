import asyncio

import aio_pika
import pytest

from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit


async def declare(producer: Producer) -> None:
    """Declare the least that the producer needs."""
    exchange = await producer.channel.declare_exchange("jobs", durable=True)
    for name, routing_key in (("jobs.default", "default"), ("jobs.default.dead", "dead")):
        queue = await producer.channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum"})
        await queue.bind(exchange, routing_key)


async def test_each_test_has_a_virtual_host_of_its_own(rabbit: Rabbit) -> None:
    mine, yours = rabbit.vhost(), rabbit.vhost()
    async with Producer(mine) as producer:
        await declare(producer)
        await producer.submit("kind", {"n": 1}, "key")
    async with Producer(yours) as producer:
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
            await producer.depth("jobs.default")
    rabbit.delete_vhost(mine)
    rabbit.delete_vhost(yours)
    assert rabbit.ctl("list_vhosts", "name", "--no-table-headers").split() == ["/"]


async def test_a_producer_publishes_what_it_is_given_and_reads_dead_letters(amqp_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await declare(producer)
        await producer.publish(b"{", queue="dead", type="broken", headers={"deadline-ms": 5})
        await producer.submit("kind", {"n": 1}, "key", queue="dead")
        broken, good = await producer.dead_letters(2)
        assert (broken.body, broken.type, broken.headers["deadline-ms"]) == (b"{", "broken", 5)
        assert (good.body, good.type, good.message_id) == (b'{"n": 1}', "kind", "key")
        assert await producer.depth("jobs.default.dead") == 0


async def test_a_publish_that_no_queue_takes_is_an_error(amqp_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await declare(producer)
        with pytest.raises(aio_pika.exceptions.PublishError):
            await producer.submit("kind", {}, "key", queue="nowhere")


async def test_a_paused_node_keeps_its_connections_and_answers_later(rabbit: Rabbit, amqp_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await declare(producer)
        with rabbit.paused():
            publishing = asyncio.create_task(producer.submit("kind", {}, "key"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(publishing), 0.2)
        await publishing


async def test_an_operator_closes_connections(rabbit: Rabbit) -> None:
    closed = asyncio.Event()
    connection = await aio_pika.connect(rabbit.url)
    connection.close_callbacks.add(lambda *_: closed.set())
    rabbit.close_connections()
    await closed.wait()


async def test_a_stalled_proxy_holds_back_confirms(amqp_url: str) -> None:
    async with Proxy(amqp_url) as proxy, Producer(proxy.url) as producer, Producer(amqp_url) as observer:
        await declare(producer)
        proxy.stall(to_server=False)
        publishing = asyncio.create_task(producer.submit("kind", {}, "key"))
        await observer.take("jobs.default")
        assert not publishing.done()
        proxy.flow()
        await publishing
