"""Dead letters back to work: the broker's innocents in one go, and nobody else."""

import aio_pika
import pytest

from tests.support.daemon import Daemon
from tests.support.producer import Producer
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.waiting import eventually

INNOCENTS = 5


async def command(amqp_url: str, store_url: str, *arguments: str) -> tuple[int, str]:
    async with Daemon(settings(amqp_url, store_url), *arguments) as process:
        return await process.wait(), process.output


async def lose_connections(amqp_url: str, deliveries: int) -> None:
    """Consume everything and lose the connection, again and again: that charges all messages in hand."""
    for _ in range(deliveries):
        connection = await aio_pika.connect(amqp_url)
        channel = await connection.channel()
        await channel.set_qos(100)
        queue = await channel.get_queue("jobs.default", ensure=False)
        for _ in range(INNOCENTS):
            if await queue.get(fail=False) is None:
                break
        await connection.close()


async def test_innocents_of_the_delivery_limit_are_collateral_and_are_redriven_in_one_go(
    amqp_url: str, postgres_url: str
) -> None:
    limited = settings(amqp_url, postgres_url, TOPOLOGY__DELIVERY_LIMIT="3")
    async with Daemon(limited, "topology", "declare") as declaring:
        assert await declaring.wait() == 0
    async with Producer(amqp_url) as producer:
        for number in range(INNOCENTS):
            await producer.submit("echo", number, f"innocent-{number}")
        await producer.submit("echo", 0, "guilty", queue="default", headers={"mine": 1})
        await lose_connections(amqp_url, 6)

        async def dead() -> bool:
            return await producer.depth("jobs.default.dead") >= INNOCENTS

        await eventually(dead, "the broker gave the innocents up")
        buried = await producer.depth("jobs.default.dead")
        for code, sent in (("rejected", 0), ("collateral", buried)):
            async with Daemon(limited, "dead", "redrive", "--code", code) as process:
                assert await process.wait() == 0
                assert process.output.split() == ["redriven", str(sent), "redriven_too_often", "0"]
        async with Daemon(limited) as daemon:
            await daemon.ready()
            rows = await all_are("succeeded", postgres_url, INNOCENTS + 1)
            assert {row["attempt"] for row in rows.values()} == {1}
        assert await producer.depth("jobs.default.dead") == 0


@pytest.mark.any_broker
async def test_a_code_that_is_none_is_one_sentence(amqp_url: str, postgres_url: str) -> None:
    code, said = await command(amqp_url, postgres_url, "dead", "redrive", "--code", "nonsense")
    assert code == 2
    assert "there is no code 'nonsense'" in said
