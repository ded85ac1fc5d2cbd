"""A hop fails because the store is away: nothing is lost, nobody is charged, and nothing spins."""

import asyncio

import pytest

from tests.support.marks import Marks
from tests.support.outages import (
    PATIENT,
    attempts,
    begun,
    calm,
    consuming,
    nothing_is_left,
    paused,
    store_behind_proxy,
)
from tests.support.postgres import Postgres
from tests.support.rows import all_are
from tests.support.settings import settings

pytestmark = pytest.mark.any_broker


async def test_the_store_is_away_at_the_claim(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    async with store_behind_proxy(amqp_url, postgres_url) as (proxy, daemon, producer):
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
    async with store_behind_proxy(amqp_url, postgres_url) as (proxy, daemon, producer):
        proxy.stall()
        await producer.submit("mark", marks.payload, "one")
        await daemon.logged(paused)
        assert (await daemon.get("/livez"))[0] == 200
        proxy.flow()
        found = await all_are("succeeded", postgres_url, 1)
        assert attempts(found)["one"][0] == 1
        await nothing_is_left(daemon, producer)


async def test_the_store_is_away_at_the_commit(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    async with store_behind_proxy(amqp_url, postgres_url) as (proxy, daemon, producer):
        await begun("wait_for_gate", producer, marks)
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
    seldom = {"STORE__LEASE_SECONDS": "60"}  # so that no renewal has the session of the commit
    async with store_behind_proxy(amqp_url, postgres_url, **seldom) as (proxy, daemon, producer):
        await producer.submit("echo", 1, "warm-up")  # which leaves its statements prepared
        await all_are("succeeded", postgres_url, 1)
        await begun("wait_for_gate", producer, marks)
        proxy.stall(to_server=False)
        marks.open_gate()
        await all_are("succeeded", postgres_url, 2)
        proxy.cut()
        proxy.flow()
        await nothing_is_left(daemon, producer)
        assert len(marks.all) == 1, "the redelivery finds the result"


async def test_the_store_is_away_when_a_retry_is_recorded(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    """Its copy is confirmed; the record waits for the store, and the copy waits for the record."""
    async with store_behind_proxy(amqp_url, postgres_url) as (proxy, daemon, producer):
        await begun("fails_at_gate", producer, marks)
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
    async with consuming(amqp_url, settings(amqp_url, postgres_url)) as (daemon, producer):
        await begun("wait_for_gate", producer, marks)
        postgres.psql("delete from consumer_jobs", postgres_url)
        marks.open_gate()
        found = await all_are("succeeded", postgres_url, 1)
        assert attempts(found) == {"one": (1, 0)}
        await nothing_is_left(daemon, producer)


async def test_postgres_is_killed_and_comes_back(amqp_url: str, marks: Marks) -> None:
    with Postgres(durable=True) as server:
        store_url = server.create_database()
        async with consuming(amqp_url, settings(amqp_url, store_url, **PATIENT)) as (daemon, producer):
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
