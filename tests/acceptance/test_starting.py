"""What the daemon says when it can't start, and what it waits for instead of ending."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import aio_pika
import pytest

from tests.support.command import Done, consumer
from tests.support.daemon import Daemon
from tests.support.postgres import GUARDED, Postgres
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.waiting import free_port

SETTINGS, MODULES, TOPOLOGY = 2, 3, 4
"""The documented exit codes."""
PASSWORD = "S3cr3t!#/@:%41"
ENCODED = quote(PASSWORD, safe="")
WRONG = "Wr0ng!#/@:%41"
NOWHERE = "amqp://127.0.0.1:1"


def is_one_sentence(done: Done, code: int, *wanted: str) -> None:
    told = f"{done.code}: {done.out}{done.err}"
    said = [line for line in done.err.splitlines() if not line.startswith("{")]
    assert done.code == code, told
    assert len(said) == 1, told
    assert said[0].startswith("consumer: "), told
    for words in wanted:
        assert words in said[0], told
    for secret in (PASSWORD, ENCODED, WRONG, quote(WRONG, safe=""), "S3cr3t", "Wr0ng"):
        assert secret not in done.out + done.err, told


@pytest.fixture
def broker_user(rabbit: Rabbit, amqp_url: str) -> Iterator[str]:
    """The URL of a user that has PASSWORD and every permission."""
    vhost = amqp_url.rpartition("/")[2]
    rabbit.evaluate(
        f'ok = rabbit_auth_backend_internal:add_user(<<"guarded">>, <<"{PASSWORD}">>, <<"tests">>), '
        f'ok = rabbit_auth_backend_internal:set_permissions(<<"guarded">>, <<"{vhost}">>, '
        '<<".*">>, <<".*">>, <<".*">>, <<"tests">>)'
    )
    yield amqp_url.replace("guest:guest", f"guarded:{ENCODED}")
    rabbit.evaluate('rabbit_auth_backend_internal:delete_user(<<"guarded">>, <<"tests">>)')


@pytest.fixture
def database_user(postgres: Postgres, postgres_url: str) -> Iterator[str]:
    """The URL of the database's owner, who has PASSWORD."""
    name = postgres_url.rpartition("/")[2]
    postgres.psql(f"create role {GUARDED} login password '{PASSWORD}'")
    postgres.psql(f"alter database {name} owner to {GUARDED}")
    yield postgres_url.replace("postgres@", f"{GUARDED}:{ENCODED}@")
    for statement in (f"drop database {name} with (force)", f"drop role {GUARDED}", f"create database {name}"):
        postgres.psql(statement)


async def test_passwords_with_special_characters_work_and_are_never_shown(broker_user: str, database_user: str) -> None:
    chosen = settings(broker_user, database_user, LOG__LEVEL="debug")
    async with Daemon(chosen) as daemon, Producer(broker_user) as producer:
        await daemon.ready()
        await producer.submit("echo", 1, "one")
        await all_are("succeeded", database_user, 1)
        shown = await asyncio.gather(
            consumer("config", "show", settings=chosen),
            consumer("config", "show", "--json", settings=chosen),
            consumer("doctor", settings=chosen),
        )
        _, metrics = await daemon.get("/metrics")
        daemon.terminate()
        assert await daemon.wait() == 0
        for text in (daemon.output, metrics, *(done.out + done.err for done in shown)):
            assert "S3cr3t" not in text


async def test_a_wrong_broker_password_is_one_sentence(broker_user: str, sqlite_url: str) -> None:
    chosen = settings(broker_user.replace(ENCODED, quote(WRONG, safe="")), sqlite_url)
    is_one_sentence(await consumer("run", settings=chosen), SETTINGS, "password", "broker.url")


@pytest.mark.any_broker
async def test_a_wrong_database_password_is_one_sentence(amqp_url: str, database_user: str) -> None:
    chosen = settings(amqp_url, database_user.replace(ENCODED, quote(WRONG, safe="")))
    is_one_sentence(await consumer("run", settings=chosen), SETTINGS, "password")


@pytest.mark.any_broker
async def test_a_database_that_is_not_there_is_one_sentence(amqp_url: str, postgres_url: str) -> None:
    chosen = settings(amqp_url, postgres_url + "_other")
    is_one_sentence(await consumer("run", settings=chosen), SETTINGS, "_other")


async def test_a_virtual_host_that_is_not_there_is_one_sentence(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url + "-other", sqlite_url)
    is_one_sentence(await consumer("run", settings=chosen), SETTINGS, "-other")


@pytest.mark.any_broker
@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("BROKER__URL", f"amqp://guest:{PASSWORD}@127.0.0.1:1/", "broker.url"),
        ("STORE__URL", f"postgresql://root:{ENCODED}@127.0.0.1:port/x", "store"),
        ("STORE__URL", f"postgresql://root:{PASSWORD}@127.0.0.1:1/x", "store"),
    ],
)
async def test_a_wrong_setting_is_one_sentence(sqlite_url: str, setting: str, value: str, words: str) -> None:
    """Many more are in the unit tests of the commands."""
    chosen = settings(NOWHERE, sqlite_url) | {setting: value}
    is_one_sentence(await consumer("run", settings=chosen), SETTINGS, words)


@pytest.mark.any_broker
@pytest.mark.parametrize(("text", "words"), [("def broken(:\n", "line 1"), ("import os\nos._exit(7)\n", "ended")])
async def test_a_wrong_job_module_is_one_sentence(sqlite_url: str, tmp_path: Path, text: str, words: str) -> None:
    """What else can be wrong with one is in the unit tests of loading."""
    (tmp_path / "wrong_module.py").write_text(text)
    chosen = settings(NOWHERE, sqlite_url, JOBS__MODULES="wrong_module", JOBS__PATH=str(tmp_path))
    is_one_sentence(await consumer("run", settings=chosen), MODULES, words)


@pytest.mark.any_broker
async def test_a_port_in_use_is_one_sentence(sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = await consumer("run", settings=settings(NOWHERE, sqlite_url, HTTP__PORT=port))
    is_one_sentence(done, SETTINGS, port, "http.port")


async def test_a_queue_with_other_arguments_is_one_sentence_and_stays(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url, HTTP__PORT=str(free_port()))
    async with Producer(amqp_url) as producer:
        await producer.channel.declare_queue("jobs.default", durable=True, arguments={"x-queue-type": "quorum"})
        await producer.channel.default_exchange.publish(aio_pika.Message(b"{}"), "jobs.default")
        is_one_sentence(
            await consumer("run", settings=chosen), TOPOLOGY, "queue 'jobs.default'", "wanted", "nothing is deleted"
        )
        assert await producer.depth("jobs.default") == 1


async def test_checking_a_topology_that_is_not_there_is_one_sentence(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url, HTTP__PORT=str(free_port()), TOPOLOGY__MODE="check")
    is_one_sentence(await consumer("run", settings=chosen), TOPOLOGY, "exchange 'jobs'", "consumer topology declare")


async def test_a_user_who_may_not_configure_is_told_so_and_can_run_in_check_mode(
    rabbit: Rabbit, amqp_url: str, broker_user: str, sqlite_url: str
) -> None:
    vhost = amqp_url.rpartition("/")[2]
    rabbit.evaluate(
        f'ok = rabbit_auth_backend_internal:set_permissions(<<"guarded">>, <<"{vhost}">>, '
        '<<>>, <<".*">>, <<".*">>, <<"tests">>)'
    )
    chosen = settings(broker_user, sqlite_url, HTTP__PORT=str(free_port()))
    is_one_sentence(await consumer("run", settings=chosen), TOPOLOGY, "permission", "check")
    declared = await consumer("topology", "declare", settings=settings(amqp_url, sqlite_url))
    assert declared.code == 0, declared
    async with Daemon(chosen | {"TOPOLOGY__MODE": "check"}) as daemon, Producer(broker_user) as producer:
        await daemon.ready()
        await producer.submit("echo", 1, "one")
        await all_are("succeeded", sqlite_url, 1)


async def test_a_broker_that_is_away_at_the_start_is_waited_for(amqp_url: str, sqlite_url: str) -> None:
    async with Proxy(amqp_url) as proxy:
        proxy.refuse()
        async with Daemon(settings(proxy.url, sqlite_url)) as daemon:
            await daemon.logged(lambda line: "no session with the broker" in line["event"], count=2)
            assert (await daemon.get("/livez"))[0] == 200
            status, body = await daemon.get("/readyz")
            assert (status, "unavailable" in body) == (503, True)
            proxy.accept()
            await daemon.ready()
            await works(amqp_url, sqlite_url)


@pytest.mark.any_broker
async def test_a_store_that_is_away_at_the_start_is_waited_for(amqp_url: str, postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy:
        proxy.refuse()
        async with Daemon(settings(amqp_url, proxy.url)) as daemon:
            await daemon.logged(lambda line: "the store is away" in line["event"], count=2)
            assert (await daemon.get("/livez"))[0] == 200
            assert (await daemon.get("/readyz"))[0] == 503
            proxy.accept()
            await daemon.ready()
            await works(amqp_url, postgres_url)


async def works(amqp_url: str, store_url: str) -> None:
    async with Producer(amqp_url) as producer:
        await producer.submit("echo", 1, "one")
        await all_are("succeeded", store_url, 1)
