"""What stops on purpose: a kind whose partner is down, and burying after a bad deploy."""

import asyncio
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.pools import JOBS
from tests.support.producer import Producer
from tests.support.rows import all_are, rows
from tests.support.settings import settings
from tests.support.waiting import eventually

MODULES = "partners,ordinary"
OTHERS = 20


def breakers(amqp_url: str, store_url: str, **more: str) -> dict[str, str]:
    return settings(amqp_url, store_url, JOBS__MODULES=MODULES, JOBS__PATH=str(JOBS), **more)


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


async def test_a_kind_whose_partner_is_down_waits_for_it_on_all_replicas_uncharged_while_others_flow_on(
    amqp_url: str, postgres_url: str, tmp_path: Path
) -> None:
    down = tmp_path / "partner.down"
    down.touch()
    chosen = breakers(amqp_url, postgres_url, POOL__PROCESSES="1")
    async with Daemon(chosen) as one, Daemon(chosen) as two, Producer(amqp_url) as producer:
        await asyncio.gather(one.ready(), two.ready())
        await producer.submit("partner", str(down), "first")

        async def cools() -> bool:
            found = [await each.metric("consumer_breaker_open", breaker="kind", kind="partner") for each in (one, two)]
            return found == [1, 1]

        await eventually(cools, "both know that the kind cools down")
        before = len(calls(tmp_path / "partner.log"))
        await asyncio.gather(
            *(producer.submit("partner", str(down), f"partner-{n}") for n in range(OTHERS)),
            *(producer.submit("echo", n, f"echo-{n}") for n in range(OTHERS)),
        )

        async def echoes() -> int:
            found = await rows(postgres_url)
            return sum(row["kind"] == "echo" and row["status"] == "succeeded" for row in found.values())

        async def others_are_done() -> bool:
            return await echoes() == OTHERS

        await eventually(others_are_done, "the other kind flows on")
        assert len(calls(tmp_path / "partner.log")) - before <= 4, "a few probes at most"
        down.unlink()
        found = await all_are("succeeded", postgres_url, 2 * OTHERS + 1, within=40)
        assert {row["attempt"] for row in found.values()} == {1}, "nobody was charged"
        assert await producer.depth("jobs.default.dead") == 0

        async def closed() -> bool:
            return sum([await each.metric("consumer_breaker_open", breaker="kind") for each in (one, two)]) == 0

        await eventually(closed, "both know that it is up again")


async def test_after_a_bad_deploy_the_daemon_stops_burying_says_so_and_recovers_by_itself(
    amqp_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    bad = tmp_path / "bad"
    bad.touch()
    eager = {"DEAD_LETTERS__BREAKER_LEAST": "10", "DEAD_LETTERS__PAUSE_SECONDS": "1"}
    async with Daemon(breakers(amqp_url, sqlite_url, **eager)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await asyncio.gather(*(producer.submit("deployed_badly", str(bad), f"job-{n}") for n in range(60)))
        [line] = (await daemon.logged(lambda line: line["event"] == "intake stopped"))[:1]
        assert "nearly all jobs are dead-lettered" in line["error"]
        assert await daemon.metric("consumer_breaker_open", breaker="dead_letter") == 1
        status, why = await daemon.get("/readyz")
        assert (status, "dead-lettered" in why) == (503, True)
        bad.unlink()
        await daemon.logged(lambda line: line["event"] == "the dead-letter breaker is closed: a job succeeded")

        async def all_ended() -> bool:
            found = await rows(sqlite_url)
            return len(found) == 60 and {row["status"] for row in found.values()} <= {"succeeded", "failed"}

        await eventually(all_ended, "every job has come to its end", within=40)
        buried = await producer.depth("jobs.default.dead")
        assert 9 <= buried <= 13, "those before the breaker opened, and one at each half-open try"
        await daemon.ready()
    succeeded = [row for row in (await rows(sqlite_url)).values() if row["status"] == "succeeded"]
    assert len(succeeded) == 60 - buried


@pytest.mark.any_broker
async def test_malformed_input_never_stops_the_daemon(amqp_url: str, sqlite_url: str) -> None:
    eager = {"DEAD_LETTERS__BREAKER_LEAST": "5"}
    async with Daemon(breakers(amqp_url, sqlite_url, **eager)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for number in range(30):
            await producer.publish(b"{", type="echo", message_id=str(number))
        await producer.submit("echo", 1, "good")
        await daemon.logged(lambda line: line["event"] == "job settled", count=31)
        assert await producer.depth("jobs.default.dead") == 30
        assert (await rows(sqlite_url))["good"]["status"] == "succeeded"
        assert not [line for line in daemon.logs if line["event"] == "intake stopped"]


async def test_the_settings_have_the_last_word_on_how_often_a_kind_is_tried(amqp_url: str, sqlite_url: str) -> None:
    said = {"KINDS": '{"fails": {"max_attempts": 6}}'}
    async with Daemon(breakers(amqp_url, sqlite_url, **said)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("fails", 1, "six")
        await all_are("failed", sqlite_url, 1)
        [letter] = await producer.take("jobs.default.dead")
    assert letter.headers["consumer-attempt"] == 6
    assert (await rows(sqlite_url))["six"]["attempt"] == 6


@pytest.mark.any_broker
async def test_a_kind_that_nobody_declares_is_refused_in_the_settings(amqp_url: str, sqlite_url: str) -> None:
    said = {"KINDS": '{"fials": {"max_attempts": 6}}'}
    async with Daemon(breakers(amqp_url, sqlite_url, **said)) as daemon:
        assert await daemon.wait() == 2
    assert "no job module declares a kind 'fials'" in daemon.output
    assert "Traceback" not in daemon.output
