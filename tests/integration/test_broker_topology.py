"""Declaring on a real broker: what is there afterwards, and what a difference sounds like."""

import aio_pika
import pytest
from aio_pika.abc import AbstractConnection

from consumer.broker.connection import BrokerConfig, connect
from consumer.broker.declare import Mode, apply, faults
from consumer.broker.look import look
from consumer.core.delay import Ladder
from consumer.core.errors import TopologyError
from consumer.core.facts import Seen
from consumer.core.topology import Topology, build
from tests.support.rabbit import Rabbit

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=6), 100)


async def queue_with(connection: AbstractConnection, name: str, **arguments: str | int) -> None:
    async with connection.channel() as channel:
        await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum", **arguments})


async def seen(url: str, *, declaring: bool = True) -> Seen:
    connection = await connect(BrokerConfig(url, "test"), "looking")
    try:
        return await look(connection, TOPOLOGY, [], declaring=declaring)
    finally:
        await connection.hang_up()


async def test_declaring_twice_is_as_good_as_once_and_nothing_is_wrong_afterwards(amqp_url: str) -> None:
    async with await aio_pika.connect(amqp_url) as connection:
        assert await faults(connection, TOPOLOGY) == []
        assert await faults(connection, TOPOLOGY) == []
    found = await seen(amqp_url)
    assert (found.missing, found.differences, found.refusals, found.held_back) == ((), (), (), False)


async def test_a_queue_with_another_argument_is_named_with_found_wanted_and_the_way_out(amqp_url: str) -> None:
    async with await aio_pika.connect(amqp_url) as connection:
        await queue_with(connection, "jobs.default", **{"x-delivery-limit": 5})
        with pytest.raises(TopologyError) as refused:
            await apply(connection, TOPOLOGY, Mode.DECLARE)
        [sentence] = await faults(connection, TOPOLOGY)
    assert str(refused.value) == sentence
    assert "queue 'jobs.default'" in sentence
    assert "nothing is deleted automatically" in sentence


@pytest.mark.parametrize(
    ("argument", "found"),
    [({"x-delivery-limit": 5}, "5"), ({"x-message-ttl": 1000}, "1000")],
)
async def test_a_look_finds_a_different_argument_and_changes_nothing(
    amqp_url: str, argument: dict[str, int], found: str
) -> None:
    async with await aio_pika.connect(amqp_url) as connection:
        await apply(connection, TOPOLOGY, Mode.DECLARE)
        async with connection.channel() as channel:
            await channel.queue_delete("jobs.default.dead")
        await queue_with(connection, "jobs.default.dead", **argument)
        first = await seen(amqp_url)
        [difference] = first.differences
        assert difference.what == "queue 'jobs.default.dead'"
        assert difference.argument in {next(iter(argument)), "x-delivery-limit"}
        assert difference.found in {found, "none"}
        assert await seen(amqp_url) == first


async def test_a_look_at_an_empty_virtual_host_finds_everything_missing_and_makes_nothing(amqp_url: str) -> None:
    missing = (await seen(amqp_url)).missing
    assert missing == (
        *(f"exchange '{exchange.name}'" for exchange in TOPOLOGY.exchanges),
        *(f"queue '{queue.name}'" for queue in TOPOLOGY.queues),
    )
    assert (await seen(amqp_url)).missing == missing


async def test_check_stops_at_what_is_missing(amqp_url: str) -> None:
    async with await aio_pika.connect(amqp_url) as connection:
        with pytest.raises(TopologyError, match="not on the broker: exchange 'jobs'; run 'consumer topology declare'"):
            await apply(connection, TOPOLOGY, Mode.CHECK)


async def test_a_user_without_configure_permission_can_check_and_is_told_what_lacks_to_declare(
    rabbit: Rabbit, amqp_url: str
) -> None:
    vhost = amqp_url.rpartition("/")[2]
    rabbit.ctl("add_user", f"reader-{vhost}", "secret")
    rabbit.ctl("set_permissions", "-p", vhost, f"reader-{vhost}", "", ".*", ".*")
    limited = amqp_url.replace("guest:guest", f"reader-{vhost}:secret")
    async with await aio_pika.connect(amqp_url) as owner, await aio_pika.connect(limited) as connection:
        with pytest.raises(TopologyError, match="no permission for exchange 'jobs'"):
            await apply(connection, TOPOLOGY, Mode.DECLARE)
        await apply(owner, TOPOLOGY, Mode.DECLARE)
        await apply(connection, TOPOLOGY, Mode.CHECK)


async def test_every_queue_is_durable_and_of_a_type_that_newer_brokers_take(rabbit: Rabbit, amqp_url: str) -> None:
    async with await aio_pika.connect(amqp_url) as connection:
        await apply(connection, TOPOLOGY, Mode.DECLARE)
    listed = rabbit.ctl("list_queues", "-p", amqp_url.rpartition("/")[2], "name", "durable", "type")
    rows = [line.split("\t") for line in listed.splitlines() if line.startswith("jobs.")]
    assert len(rows) == len(TOPOLOGY.queues)
    assert {(durable, kind.rpartition(".")[2]) for _, durable, kind in rows} <= {
        ("true", "quorum"),
        ("true", "rabbit_quorum_queue"),
    }


def test_the_topology_is_a_value() -> None:
    assert build("jobs", "default", Ladder("jobs", levels=6), 100) == TOPOLOGY
    assert isinstance(TOPOLOGY, Topology)
