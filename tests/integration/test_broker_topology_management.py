"""What the management API shows of a real broker, and what is made of it. The plugin costs start-up time: one node."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.request import Request, urlopen

import aio_pika
import pytest

from consumer.broker.connection import BrokerConfig, connect
from consumer.broker.declare import Mode, apply
from consumer.broker.look import look
from consumer.broker.management import manage
from consumer.core import amqp_rules, management_rules
from consumer.core.delay import Ladder
from consumer.core.errors import BrokerUnavailable
from consumer.core.facts import Managed, Seen
from consumer.core.findings import Severity
from consumer.core.topology import Topology, build
from tests.support.command import consumer
from tests.support.rabbit import Rabbit
from tests.support.users import User
from tests.support.waiting import eventually, free_port

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4), 100)
PORT = free_port()
URL = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def node() -> Iterator[Rabbit]:
    """Its queues show their policies soon, and not after seconds."""
    settings = {
        "management.tcp.port": str(PORT),
        "management.tcp.ip": "127.0.0.1",
        "collect_statistics_interval": "200",
    }
    with Rabbit(settings, plugins=["rabbitmq_management"]) as rabbit:
        rabbit.evaluate("application:set_env(rabbit, quorum_tick_interval, 200)")
        yield rabbit


@pytest.fixture
def vhost(node: Rabbit) -> Iterator[str]:
    url = node.vhost()
    yield url
    node.delete_vhost(url)


async def declare(url: str, topology: Topology = TOPOLOGY) -> None:
    async with await aio_pika.connect(url) as connection:
        await apply(connection, topology, Mode.DECLARE)


async def declared(url: str, topology: Topology = TOPOLOGY) -> Managed:
    """Declare, and return what the API shows once it has statistics of all queues: after 5 s."""
    await declare(url, topology)
    found = Managed()

    async def complete() -> bool:
        nonlocal found
        found = await manage(BrokerConfig(url, "test"), URL, topology)
        return all(state.definition is not None for state in found.queues)

    await eventually(complete, "the broker has statistics")
    return found


def findings(managed: Managed, topology: Topology = TOPOLOGY) -> dict[str, tuple[str, str]]:
    """What was found, by its subject."""
    found = management_rules.of_managed_topology(managed, Seen(), topology)
    return {finding.what: (finding.severity.value, finding.found) for finding in found}


def set_policy(vhost: str, path: str, pattern: str, definition: Mapping[str, object]) -> None:
    kind, _, name = path.partition("/")
    body = json.dumps({"pattern": pattern, "definition": definition, "apply-to": "queues"}).encode()
    login = b64encode(b"guest:guest").decode()
    headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
    urlopen(Request(f"{URL}/api/{kind}/{vhost.rpartition('/')[2]}/{name}", body, headers, method="PUT")).close()


async def test_policies_that_change_what_we_need_are_named_with_their_key(vhost: str) -> None:
    harmless = {"overflow": "drop-head", "dead-letter-exchange": "elsewhere", "message-ttl": 10**9}
    set_policy(vhost, "policies/mine", "^jobs.default$", {"message-ttl": 60_000, "max-length": 5})
    set_policy(vhost, "operator-policies/theirs", "^jobs.default$", {"delivery-limit": 7})
    set_policy(vhost, "policies/caps", "^jobs.default.dead$", {"max-length": 9})
    set_policy(vhost, "policies/harmless", r"^jobs\.delay\.v1\.\d$", harmless)
    found = findings(await declared(vhost))
    assert found == {
        "message-ttl of jobs.default": ("fault", "60000 by policy 'mine'"),
        "delivery-limit of jobs.default": ("fault", "7 by operator policy 'theirs'"),
        "max-length of jobs.default": ("warning", "5 by policy 'mine'"),
        "max-length of jobs.default.dead": ("fault", "9 by policy 'caps'"),
    }


async def test_a_missing_binding_and_one_of_another_queue_are_found(vhost: str) -> None:
    await declare(vhost)
    async with await aio_pika.connect(vhost) as connection, connection.channel() as channel:
        dead = await channel.get_queue("jobs.default.dead", ensure=False)
        await dead.unbind("jobs.dlx", "default")
        audit = await channel.declare_queue("audit", durable=True)
        await audit.bind("jobs", "default")
        managed = await manage(BrokerConfig(vhost, "test"), URL, TOPOLOGY)
    found = findings(managed)
    assert found["bindings"] == ("fault", "no jobs.dlx → jobs.default.dead (default)")
    assert found["bindings of other queues"] == ("warning", "jobs → audit (default)")


async def test_all_differing_arguments_are_found_where_amqp_shows_the_first(vhost: str) -> None:
    async with await aio_pika.connect(vhost) as connection, connection.channel() as channel:
        await channel.declare_queue("jobs.default.dead", durable=True, arguments={"x-max-length": 5})
        managed = await manage(BrokerConfig(vhost, "test"), URL, TOPOLOGY)
    assert {what: found for what, (_, found) in findings(managed).items() if "x-" in what} == {
        "queue 'jobs.default.dead', x-delivery-limit": "none",
        "queue 'jobs.default.dead', x-max-length": "5",
        "queue 'jobs.default.dead', x-queue-type": "classic",
    }


async def test_an_alarm_is_seen_over_both_ways(node: Rabbit, vhost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.broker.connection.ANSWER", 2.0)
    await declare(vhost)
    node.evaluate("rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []})")
    try:
        managed = await manage(BrokerConfig(vhost, "test"), URL, TOPOLOGY)
        connection = await connect(BrokerConfig(vhost, "test"), "looking")
        try:
            seen = await look(connection, TOPOLOGY, [], declaring=True)
        finally:
            await connection.hang_up()
    finally:
        node.evaluate("rabbit_alarm:clear_alarm({resource_limit, memory, node()})")
    [alarm] = management_rules.of_managed_broker(managed)
    assert (alarm.severity, alarm.found.split(" on ")[0]) == (Severity.FAULT, "memory")
    assert [finding.what for finding in amqp_rules.of_broker(seen)] == ["publishing"]


async def test_a_user_without_the_tag_is_told_which_one_lacks(node: Rabbit, vhost: str) -> None:
    user = User(node, vhost.rpartition("/")[2])
    config = BrokerConfig(vhost.replace("guest:guest", f"{user.name.replace(' ', '%20')}:first"), "test")
    with pytest.raises(BrokerUnavailable, match="refuses the user, who needs the tag 'management'") as refused:
        await manage(config, URL, TOPOLOGY)
    assert "first" not in str(refused.value)
    node.ctl("set_user_tags", user.name, "management")
    await declare(vhost)
    assert len((await manage(config, URL, TOPOLOGY)).queues) == len(TOPOLOGY.queues)
    user.drop()


async def test_the_commands_look_through_the_api_where_they_may(vhost: str, sqlite_url: str) -> None:
    await declared(vhost, build("jobs", "default", Ladder("jobs"), 100))
    settings = {"BROKER__URL": vhost, "BROKER__MANAGEMENT_URL": URL, "STORE__URL": sqlite_url}
    check = await consumer("topology", "check", "--json", settings=settings)
    assert (check.code, json.loads(check.out)) == (0, {"topology": "as wanted", "findings": []}), check
    second = settings | {"TOPOLOGY__VERSION": "2"}
    assert (await consumer("topology", "migrate", "--from", "1", settings=second)).code == 0
    async with await aio_pika.connect(vhost) as connection, connection.channel() as channel:
        old = await channel.get_queue("jobs.default", ensure=False)
        await old.bind("jobs", "default")
    check = await consumer("topology", "check", settings=second)
    assert (check.code, "warning" in check.out, "jobs → jobs.default (default)" in check.out) == (0, True, True), check
