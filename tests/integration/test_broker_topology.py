"""Declaring on a real broker: what is there afterwards, and what a difference sounds like."""

from collections.abc import Iterator

import aio_pika
import pytest
from aio_pika.abc import AbstractConnection

from consumer.broker.connection import BrokerConfig, connect
from consumer.broker.declare import Mode, apply, faults
from consumer.broker.look import look
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import open_session
from consumer.core.amqp_rules import differing, of_topology
from consumer.core.delay import Ladder
from consumer.core.errors import TopologyError
from consumer.core.facts import Difference, Right, Seen
from consumer.core.findings import Severity
from consumer.core.topology import Topology, build
from tests.support.producer import Producer
from tests.support.rabbit import Rabbit
from tests.support.users import User

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
    assert (found.missing, found.differences, found.missing_rights, found.held_back) == ((), (), (), False)


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


async def test_a_queue_that_is_somebody_s_own_and_an_exchange_of_another_type_are_found(amqp_url: str) -> None:
    async with await aio_pika.connect(amqp_url) as connection, connection.channel() as channel:
        await channel.declare_queue("jobs.default", exclusive=True)
        await channel.declare_exchange("jobs", "topic", durable=True)
        found = {difference.what: difference for difference in (await seen(amqp_url)).differences}
    assert "exclusive access" in found["queue 'jobs.default'"].found
    exchange = found["exchange 'jobs'"]
    assert (exchange.argument, exchange.found, exchange.wanted) == ("type", "topic", "direct")


async def test_an_exchange_with_another_argument_is_named_whoever_looks(amqp_url: str) -> None:
    async with await aio_pika.connect(amqp_url) as connection:
        async with connection.channel() as channel:
            await channel.declare_exchange("jobs.delay.v1.out", "topic", durable=True)
        [sentence] = await faults(connection, TOPOLOGY)
        with pytest.raises(TopologyError) as declared:
            await apply(connection, TOPOLOGY, Mode.DECLARE)
        with pytest.raises(TopologyError) as checked:
            await apply(connection, TOPOLOGY, Mode.CHECK)
    assert sentence == str(declared.value) == str(checked.value)
    [difference] = (await seen(amqp_url)).differences
    assert difference == Difference("exchange 'jobs.delay.v1.out'", "alternate-exchange", "none", "jobs.delay.v1.stray")
    assert sentence == str(differing(difference))


async def test_a_look_counts_strays_and_takes_none(amqp_url: str) -> None:
    async with await aio_pika.connect(amqp_url) as connection, Producer(amqp_url) as producer:
        await apply(connection, TOPOLOGY, Mode.DECLARE)
        assert (await seen(amqp_url)).strays == ()
        out = await producer.channel.get_exchange("jobs.delay.v1.out", ensure=False)
        await out.publish(aio_pika.Message(b"{}", delivery_mode=2), routing_key="0.0.0.0.0.1.gone")
        assert (await seen(amqp_url)).strays == (("jobs.delay.v1.stray", 1),)
        [stray] = await producer.take("jobs.delay.v1.stray")
    assert (stray.routing_key, stray.redelivered) == ("0.0.0.0.0.1.gone", False)


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


@pytest.fixture
def user(rabbit: Rabbit, amqp_url: str) -> Iterator[User]:
    user = User(rabbit, amqp_url.rpartition("/")[2])
    yield user
    user.drop()


def as_user(user: User, url: str) -> str:
    return url.replace("guest:guest", f"{user.name.replace(' ', '%20')}:first")


ALL, NOTHING = r"^jobs(\..*)?$", "^$"
CHECKING = (NOTHING, r"^jobs(\.dlx|\.delay\..*)?$", r"^jobs\.(default(\..*)?|delay\..*\.stray)$")


async def test_the_rights_in_the_documents_are_enough_to_declare_and_to_work(user: User, amqp_url: str) -> None:
    config = BrokerConfig(as_user(user, amqp_url), "test")
    user.may(ALL, ALL, ALL)
    await (await open_session(config, TOPOLOGY, Mode.DECLARE, AmqpPublisher(5))).close()
    assert (await seen(config.url)).missing_rights == ()
    user.may(*CHECKING)
    await (await open_session(config, TOPOLOGY, Mode.CHECK, AmqpPublisher(5))).close()
    found = await seen(config.url, declaring=False)
    assert [finding.severity for finding in of_topology(found, TOPOLOGY, declaring=False)] == [Severity.UNSEEN]
    with pytest.raises(TopologyError, match=r"no permission for exchange 'jobs'.*set topology\.mode to 'check'"):
        await open_session(config, TOPOLOGY, Mode.DECLARE, AmqpPublisher(5))


@pytest.mark.parametrize(
    ("rights", "lacking"),
    [
        ((ALL, r"^jobs$|\.v1\.|default", ALL), {(Right.WRITE, "exchange 'jobs.dlx'")}),
        ((ALL, ALL, r"^jobs$|dlx|\.v1\.|dead"), {(Right.READ, "queue 'jobs.default'")}),
        ((ALL, ALL, r"default|dlx|\.v1\."), {(Right.READ, "exchange 'jobs'")}),
        ((ALL, r"^jobs$|dlx|\.v1\.|dead", ALL), {(Right.WRITE, "queue 'jobs.default'")}),
        ((r"default|^jobs$|\.v1\.", ALL, ALL), {(Right.CONFIGURE, "exchange 'jobs.dlx'")}),
    ],
)
async def test_each_right_that_lacks_is_found_by_a_look_that_touches_no_message(
    user: User, amqp_url: str, rights: tuple[str, str, str], lacking: set[tuple[Right, str]]
) -> None:
    async with await aio_pika.connect(amqp_url) as connection, Producer(amqp_url) as producer:
        await apply(connection, TOPOLOGY, Mode.DECLARE)
        await producer.submit("echo", 1, "k")
        user.may(*rights)
        found = await seen(as_user(user, amqp_url))
        assert {(missing.right, missing.what) for missing in found.missing_rights} == lacking
        [message] = await producer.take("jobs.default")
    assert not message.redelivered
    assert "x-delivery-count" not in message.headers


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
