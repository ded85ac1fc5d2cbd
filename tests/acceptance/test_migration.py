"""Another version of the queues under traffic: nothing is lost, also where the migration is killed in the middle."""

import asyncio
import json
from itertools import count

from tests.support.command import consumer
from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rows import rows
from tests.support.settings import settings
from tests.support.waiting import elapse, eventually

BACKLOG, DEAD, RETRIES, BOTH = 1200, 5, 5, 40


async def publish_until(stop: asyncio.Event, producer: Producer) -> int:
    """Jobs as any producer sends them, who knows nothing of versions; return how many."""
    for number in count():
        await producer.submit("echo", number, f"live-{number}")
        if stop.is_set():
            return number + 1
        await elapse(0.01)
    raise AssertionError


async def test_traffic_goes_on_and_nothing_is_lost_when_a_migration_is_killed_in_the_middle(
    amqp_url: str, postgres_url: str
) -> None:
    first = settings(amqp_url, postgres_url, TOPOLOGY__DELAY_LEVELS="8", POOL__LOOK_AHEAD="16")
    second = first | {"TOPOLOGY__VERSION": "2", "TOPOLOGY__DELAY_LEVELS": "7"}
    stop = asyncio.Event()
    async with Producer(amqp_url) as producer:
        async with Daemon(first) as old:
            await old.ready()
            for number in range(DEAD):
                await producer.submit("reject", number, f"dead-{number}")
            for number in range(RETRIES):
                await producer.submit("flaky", 1, f"later-{number}")
            await old.logged(lambda line: line.get("disposition") in {"dead_letter", "retry"}, count=DEAD + RETRIES)
            old.terminate()
            assert await old.wait() == 0
        for number in range(BACKLOG):
            await producer.submit("echo", number, f"backlog-{number}")
        async with Daemon(second) as new:
            await new.ready()
            traffic = asyncio.create_task(publish_until(stop, producer))
            async with Daemon(second, "topology", "migrate", "--from", "1") as killed:
                await eventually(lambda: fewer(producer, "jobs.default", BACKLOG), "it moves messages")
                killed.kill()
                await killed.wait()
            done = await consumer("topology", "migrate", "--from", "1", "--json", settings=second)
            stop.set()
            live = await traffic
            assert done.code == 0, done
            assert json.loads(done.out)["finished"]
            await eventually(lambda: succeeded(postgres_url, BACKLOG + RETRIES + live), "all jobs are done", 40)
            found = await rows(postgres_url)
        assert {row["attempt"] for key, row in found.items() if not key.startswith("later")} == {1}
        assert [await producer.depth(queue) for queue in ("jobs.default", "jobs.default.dead")] == [0, 0]
        letters = {letter.message_id for letter in await producer.take("jobs.default.v2.dead", DEAD)}
        assert letters == {f"dead-{number}" for number in range(DEAD)}


async def test_daemons_of_both_versions_run_each_job_once_until_the_old_ones_are_gone(
    amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    first = settings(amqp_url, postgres_url, TOPOLOGY__DELAY_LEVELS="8", STORE__LEASE_SECONDS="3")
    second = first | {"TOPOLOGY__VERSION": "2", "TOPOLOGY__DELIVERY_LIMIT": "200"}
    migrate = ("topology", "migrate", "--from", "1", "--json")
    async with Producer(amqp_url) as producer, Daemon(first) as old, Daemon(second) as new:
        await asyncio.gather(old.ready(), new.ready())
        for number in range(BOTH):
            await producer.submit("mark", marks.payload, f"k{number}")
        await producer.submit("reject", 1, "dead")
        await eventually(lambda: succeeded(postgres_url, BOTH), "all jobs are done")
        early = await consumer(*migrate, settings=second)
        assert (early.code, "consumers" in json.loads(early.out)["remains"][0]) == (1, True), early
        await producer.submit("mark", marks.payload, "last")
        old.terminate()
        assert await old.wait() == 0
        late = await consumer(*migrate, settings=second)
        assert (late.code, json.loads(late.out)["remains"]) == (0, []), late
        await eventually(lambda: succeeded(postgres_url, BOTH + 1), "the last job is done")
        assert sorted(mark.key for mark in marks.all) == sorted([*(f"k{number}" for number in range(BOTH)), "last"])
        letters = await producer.take("jobs.default.v2.dead", 2)
        assert len({letter.headers["consumer-dead-id"] for letter in letters}) == 1


async def fewer(producer: Producer, queue: str, than: int) -> bool:
    return 0 < await producer.depth(queue) < than


async def succeeded(url: str, number: int) -> bool:
    return [row["status"] for row in (await rows(url)).values()].count("succeeded") == number
