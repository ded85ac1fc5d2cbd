"""A cancelled job never runs again, wherever it was: queued, at a child, delayed, waiting for a retry, running."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from consumer.core.ports import Store
from consumer.store.open import open_store
from tests.contract.stores import claim_of, run_of, success
from tests.support.command import consumer
from tests.support.daemon import Daemon, Line
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rows import rows
from tests.support.settings import settings
from tests.support.waiting import eventually

pytestmark = pytest.mark.any_broker

JOBS = {
    "running": "goes_on",
    "ahead": "mark",
    "waiting": "mark",
    "delayed": "mark",
    "retrying": "fails_soon",
    "unseen": "mark",
}
"""A job in each place, by its key."""


@asynccontextmanager
async def opened(store_url: str) -> AsyncIterator[Store]:
    store = await open_store(store_url)
    try:
        yield store
    finally:
        await store.close()


async def has_status(store_url: str, key: str, status: str) -> None:
    async def so() -> bool:
        return (await rows(store_url)).get(key, {}).get("status") == status

    await eventually(so, f"{key} is {status}")


def duplicate(line: Line) -> bool:
    return line.get("disposition") == "duplicate" and line["reason"] == "cancelled"


async def shows_its_progress(chosen: dict[str, str], store: Store) -> None:
    async def is_noted() -> bool:
        row = await store.find("goes_on", "running")
        return row is not None and row.progress is not None

    await eventually(is_noted, "progress is in the store")
    status = await consumer("status", "goes_on", "running", "--json", settings=chosen)
    assert (status.code, status.err) == (0, ""), status
    assert json.loads(status.out)["progress"] == {"fraction": 0.25, "note": "one of four"}


async def put_in_their_places(producer: Producer, marks: Marks, store_url: str) -> None:
    due = time.time_ns() // 1_000_000 + 3_000
    await producer.submit("fails_soon", marks.payload, "retrying")
    await has_status(store_url, "retrying", "retrying")
    await producer.submit("mark", marks.payload, "delayed", headers={"not-before-ms": due})
    await producer.submit("goes_on", marks.payload, "running")
    await marks.of("running")
    await producer.submit("mark", marks.payload, "ahead")
    await has_status(store_url, "ahead", "processing")
    await producer.submit("mark", marks.payload, "waiting")


async def test_a_job_that_is_cancelled_never_runs_again_wherever_it_was(
    amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, postgres_url, POOL__PROCESSES="1")
    async with Producer(amqp_url) as producer:
        async with Daemon(chosen) as daemon:
            await daemon.ready()
            await put_in_their_places(producer, marks, postgres_url)
            async with opened(postgres_url) as store:
                await shows_its_progress(chosen, store)
                for key in JOBS.keys() - {"running"}:
                    await store.cancel(JOBS[key], key, "a test")
            # last, since the only child runs the others when it is over
            done = await consumer("cancel", "goes_on", "running", settings=chosen)
            assert (done.code, done.err) == (0, ""), done
            # each message is acked as soon as it comes by; that of the unseen job never came
            settled = await daemon.logged(duplicate, len(JOBS) - 1)
            assert {line["key"] for line in settled} == JOBS.keys() - {"unseen"}
            assert [mark.key for mark in marks.all] == ["retrying", "running"]
            await producer.submit("mark", marks.payload, "after")
            await has_status(postgres_url, "after", "succeeded")
        async with Daemon(chosen) as daemon:
            for key, kind in JOBS.items():
                await producer.submit(kind, marks.payload, key)
            await daemon.logged(duplicate, len(JOBS))
            daemon.terminate()
            assert await daemon.wait() == 0
        found = await rows(postgres_url)
        assert {key: found[key]["status"] for key in JOBS} == dict.fromkeys(JOBS, "cancelled")
        assert {found[key]["error_code"] for key in JOBS} == {"cancelled"}
        assert {mark.key for mark in marks.all} == {"retrying", "running", "after"}
        assert await producer.depth("jobs.default") == 0
        assert await producer.depth("jobs.default.dead") == 0


async def test_the_result_of_a_run_that_ends_before_it_can_be_ended_is_dropped(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("wait_for_gate", marks.payload, "a")
        await marks.of("a")
        async with opened(sqlite_url) as store:
            await store.cancel("wait_for_gate", "a", "a test")
        marks.open_gate()
        await daemon.logged(duplicate)
        row = (await rows(sqlite_url))["a"]
        assert (row["status"], row["result"]) == ("cancelled", None)
        assert len(marks.all) == 1


async def test_the_command_needs_no_broker_and_says_what_it_did_and_to_whom(sqlite_url: str) -> None:
    chosen = settings("amqp://127.0.0.1:1", sqlite_url)
    async with opened(sqlite_url) as store:
        await store.write(success(await run_of(store, claim_of("done", kind="echo"))))
    done, again, over, odd = await asyncio.gather(
        consumer("cancel", "echo", "later", settings=chosen),
        consumer("cancel", "echo", "later", "--json", settings=chosen),
        consumer("cancel", "echo", "done", settings=chosen),
        consumer("cancel", "echo", "a\x1bb", settings=chosen),
    )
    assert (done.code, done.out.split()[:4]) == (0, ["job", "echo", "later", "why"])
    assert "seen  not yet" in done.out
    facts = json.loads(again.out)
    assert (again.code, facts["status"], facts["error"]["code"]) == (0, "cancelled", "cancelled")
    assert (over.code, over.out) == (1, "")
    assert over.err == (
        "consumer: the job of kind 'echo' with key 'done' has succeeded already: there is nothing to cancel\n"
    )
    assert (odd.code, odd.out) == (2, "")
    assert (
        odd.err == "consumer: no job can be called so: its key holds a control character or half of a surrogate pair\n"
    )
    resubmitted = await consumer("submit", "echo", "1", "--key", "later", settings=chosen)
    assert (resubmitted.code, resubmitted.out) == (2, "")
    assert "was cancelled for good" in resubmitted.err
