"""A hop fails because something of ours is away: nothing is lost, nobody is charged, and nothing spins."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.daemon import Daemon, Line
from tests.support.marks import Marks
from tests.support.postgres import Postgres
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.rows import Row, all_are
from tests.support.settings import settings
from tests.support.waiting import eventually

OUTAGE = 1.5
"""Seconds that something stays away, so that a hot loop would show."""
TRIES = 12
"""Tries with backoff that fit into an outage, and log lines likewise."""
CPU = 0.5
"""Seconds of CPU that an outage may cost."""
PATIENT = {"BROKER__PUBLISH_TIMEOUT_SECONDS": "1", "STORE__LEASE_SECONDS": "3"}


@asynccontextmanager
async def calm(daemon: Daemon) -> AsyncIterator[None]:
    """The body is an outage, and goes on for a while: the daemon waits it out, and doesn't spin."""
    lines, deliveries, cpu = len(daemon.logs), await received(daemon), cpu_seconds(daemon.pid)
    yield
    await asyncio.sleep(OUTAGE)
    assert daemon.running
    assert len(daemon.logs) - lines <= 3 * TRIES
    assert await received(daemon) - deliveries <= TRIES
    assert cpu_seconds(daemon.pid) - cpu < CPU
    assert (await daemon.get("/livez"))[0] == 200
    assert (await daemon.get("/readyz"))[0] == 503


async def received(daemon: Daemon) -> float:
    return await daemon.metric("consumer_messages_received_total")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def nothing_is_left(daemon: Daemon, producer: Producer) -> None:
    async def empty() -> bool:
        return await producer.depth("jobs.default") == 0

    await eventually(empty, "the queue is empty")
    assert await producer.depth("jobs.default.dead") == 0
    assert await daemon.metric("consumer_dead_letters_total") == 0
    daemon.terminate()
    assert await daemon.wait() == 0
    assert await producer.depth("jobs.default") == 0, "all is acked"


def attempts(found: dict[str, Row]) -> dict[str, tuple[int, int]]:
    return {key: (row["attempt"], row["crashes"]) for key, row in found.items()}


def paused(line: Line) -> bool:
    return line.get("phase") == "paused"


async def test_the_store_is_away_at_the_claim(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    async with (
        Proxy(postgres_url) as proxy,
        Daemon(settings(amqp_url, proxy.url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        async with calm(daemon):
            proxy.refuse()
            proxy.cut()
            for key in ("one", "two", "three"):
                await producer.submit("mark", marks.payload, key)
            await daemon.logged(paused)
        assert marks.all == []
        proxy.accept()
        found = await all_are("succeeded", postgres_url, 3)
        assert set(attempts(found).values()) == {(1, 0)}
        assert len(marks.all) == 3
        await nothing_is_left(daemon, producer)


async def test_the_store_falls_silent_at_the_claim(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    """As behind a dead switch: no connection is refused, and nothing is answered."""
    async with (
        Proxy(postgres_url) as proxy,
        Daemon(settings(amqp_url, proxy.url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        proxy.stall()
        await producer.submit("mark", marks.payload, "one")
        await daemon.logged(paused)
        assert (await daemon.get("/livez"))[0] == 200
        proxy.flow()
        found = await all_are("succeeded", postgres_url, 1)
        assert attempts(found)["one"][0] == 1
        await nothing_is_left(daemon, producer)


async def test_the_store_is_away_at_the_commit(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    async with (
        Proxy(postgres_url) as proxy,
        Daemon(settings(amqp_url, proxy.url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("wait_for_gate", marks.payload, "one")
        await marks.of("one")
        async with calm(daemon):
            proxy.refuse()
            proxy.cut()
            marks.open_gate()
            await daemon.logged(paused)
        proxy.accept()
        found = await all_are("succeeded", postgres_url, 1)
        assert attempts(found) == {"one": (1, 0)}
        assert found["one"]["result"] == '"one"'
        assert [mark.attempt for mark in marks.all] == [1] * len(marks.all)
        await nothing_is_left(daemon, producer)


async def test_the_commit_gets_through_and_its_answer_does_not(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    async with (
        Proxy(postgres_url) as proxy,
        Daemon(settings(amqp_url, proxy.url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("echo", 1, "warm-up")  # which leaves its statements prepared
        await all_are("succeeded", postgres_url, 1)
        await producer.submit("wait_for_gate", marks.payload, "one")
        await marks.of("one")
        proxy.stall(to_server=False)
        marks.open_gate()
        await all_are("succeeded", postgres_url, 2)
        proxy.cut()
        proxy.flow()
        await nothing_is_left(daemon, producer)
        assert len(marks.all) == 1, "the redelivery finds the result"


async def test_the_store_is_away_when_a_retry_is_recorded(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    """Its copy is confirmed; the record waits for the store, and the copy waits for the record."""
    async with (
        Proxy(postgres_url) as proxy,
        Daemon(settings(amqp_url, proxy.url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("fails_at_gate", marks.payload, "one")
        await marks.of("one")
        async with calm(daemon):
            proxy.refuse()
            proxy.cut()
            marks.open_gate()
            await daemon.logged(paused)
        proxy.accept()
        found = await all_are("succeeded", postgres_url, 1)
        assert found["one"]["result"] == '"one"'
        assert attempts(found) == {"one": (2, 0)}
        assert [mark.attempt for mark in marks.all] == [1, 2]
        await nothing_is_left(daemon, producer)


async def test_a_claim_that_the_store_forgot_is_not_acked_without_its_result(
    postgres: Postgres, amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    """As after a failover to a replica that lags behind: the row of the running job is gone."""
    async with Daemon(settings(amqp_url, postgres_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("wait_for_gate", marks.payload, "one")
        await marks.of("one")
        postgres.psql("delete from consumer_jobs", postgres_url)
        marks.open_gate()
        found = await all_are("succeeded", postgres_url, 1)
        assert attempts(found) == {"one": (1, 0)}
        await nothing_is_left(daemon, producer)


async def test_postgres_is_killed_and_comes_back(amqp_url: str, marks: Marks) -> None:
    with Postgres(durable=True) as server:
        store_url = server.create_database()
        async with (
            Daemon(settings(amqp_url, store_url, **PATIENT)) as daemon,
            Producer(amqp_url) as producer,
        ):
            await daemon.ready()
            await producer.submit("wait_for_gate", marks.payload, "running")
            await marks.of("running")
            async with calm(daemon):
                server.kill()
                marks.open_gate()
                for key in ("next", "after"):
                    await producer.submit("mark", marks.payload, key)
                await daemon.logged(paused)
            await asyncio.to_thread(server.start)
            found = await all_are("succeeded", store_url, 3)
            assert set(attempts(found).values()) == {(1, 0)}
            await nothing_is_left(daemon, producer)


async def test_the_broker_is_gone_at_the_confirm_of_a_retry(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    async with (
        Proxy(amqp_url) as proxy,
        Daemon(settings(proxy.url, sqlite_url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("fails_at_gate", marks.payload, "one")
        await marks.of("one")
        async with calm(daemon):
            proxy.refuse()
            proxy.stall()
            marks.open_gate()
            await daemon.logged(paused)
            proxy.cut()
        proxy.flow()
        proxy.accept()
        found = await all_are("succeeded", sqlite_url, 1)
        assert attempts(found) == {"one": (2, 0)}
        assert sum(mark.attempt == 2 for mark in marks.all) == 1
        await nothing_is_left(daemon, producer)


async def test_the_confirm_of_a_retry_is_lost_and_its_copy_is_not(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    """A publish without an answer is unknown, not failed: this one landed."""
    async with (
        Proxy(amqp_url) as proxy,
        Daemon(settings(proxy.url, sqlite_url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("fails_at_gate", marks.payload, "one")
        await marks.of("one")
        proxy.stall(to_server=False)
        marks.open_gate()
        await daemon.logged(lambda line: line["event"] == "intake stopped")
        proxy.cut()
        proxy.flow()
        found = await all_are("succeeded", sqlite_url, 1)
        assert found["one"]["attempt"] == 2
        await daemon.logged(lambda line: line.get("disposition") == "duplicate")
        assert sum(mark.attempt == 2 for mark in marks.all) == 1
        await nothing_is_left(daemon, producer)


async def test_the_broker_is_gone_at_the_ack(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    async with (
        Proxy(amqp_url) as proxy,
        Daemon(settings(proxy.url, sqlite_url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("wait_for_gate", marks.payload, "one")
        await marks.of("one")
        async with calm(daemon):
            proxy.refuse()
            proxy.cut()
            await daemon.logged(paused)
            marks.open_gate()
            (line,) = await daemon.logged(lambda line: line.get("key") == "one")
        assert (line["disposition"], line["stale"]) == ("complete", True)
        proxy.accept()
        (_, again) = await daemon.logged(lambda line: line.get("key") == "one", count=2)
        assert again["disposition"] == "duplicate"
        assert attempts(await all_are("succeeded", sqlite_url, 1)) == {"one": (1, 0)}
        assert len(marks.all) == 1
        await nothing_is_left(daemon, producer)


async def test_a_delivery_that_comes_back_while_its_job_still_runs_is_settled_like_it(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    async with (
        Proxy(amqp_url) as proxy,
        Daemon(settings(proxy.url, sqlite_url)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("wait_for_gate", marks.payload, "one")
        await marks.of("one")
        proxy.cut()

        async def redelivered() -> bool:
            return await daemon.metric("consumer_messages_received_total", redelivered="true") >= 1

        await eventually(redelivered, "the broker hands it out again")
        marks.open_gate()
        first, again = await daemon.logged(lambda line: line.get("key") == "one", count=2)
        assert (first["disposition"], again["disposition"]) == ("complete", "duplicate")
        assert len(marks.all) == 1
        await nothing_is_left(daemon, producer)


async def test_rabbitmq_is_killed_and_comes_back(sqlite_url: str, marks: Marks) -> None:
    with Rabbit() as node:
        async with Daemon(settings(node.url, sqlite_url, **PATIENT)) as daemon:
            await daemon.ready()
            async with Producer(node.url) as producer:
                await producer.submit("fails_at_gate", marks.payload, "running")
                await marks.of("running")
                for key in ("next", "after"):
                    await producer.submit("wait_for_gate", marks.payload, key)
                await asyncio.to_thread(node.kill)
            async with calm(daemon):
                marks.open_gate()
                await daemon.logged(paused)
            await asyncio.to_thread(node.start)
            found = await all_are("succeeded", sqlite_url, 3)
            assert {key: row["attempt"] for key, row in found.items()} == {"running": 2, "next": 1, "after": 1}
            async with Producer(node.url) as producer:
                await nothing_is_left(daemon, producer)
