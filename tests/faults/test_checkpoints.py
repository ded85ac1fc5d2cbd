"""A daemon is told by a setting where to kill itself; another one goes on from there."""

import signal

import pytest

from consumer.core.checkpoint import Checkpoint
from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rows import all_are
from tests.support.settings import settings

SHORT_LEASE = {"STORE__LEASE_SECONDS": "3"}


@pytest.mark.parametrize(
    ("checkpoint", "executions", "crashes"),
    [
        (Checkpoint.AFTER_CLAIM, 1, 1),
        (Checkpoint.AFTER_RUN, 2, 1),
        (Checkpoint.AFTER_COMMIT, 1, 0),
        (Checkpoint.BEFORE_ACK, 1, 0),
    ],
)
async def test_a_job_whose_daemon_died_at_a_checkpoint_has_one_result_and_no_attempt_charged(
    amqp_url: str, sqlite_url: str, marks: Marks, checkpoint: Checkpoint, executions: int, crashes: int
) -> None:
    chosen = settings(amqp_url, sqlite_url, **SHORT_LEASE)
    async with Producer(amqp_url) as producer:
        await dies_at(checkpoint, chosen, producer, marks, "mark")
        async with Daemon(chosen):
            found = await all_are("succeeded", sqlite_url, 1)
            assert (found["a"]["attempt"], found["a"]["crashes"]) == (1, crashes)
            assert found["a"]["result"] == '"a"'
            assert [mark.attempt for mark in marks.all] == [1] * executions
        assert await producer.depth("jobs.default.dead") == 0


async def test_a_retry_whose_copy_was_confirmed_when_the_daemon_died_is_the_second_attempt_and_no_other(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    marks.open_gate()
    chosen = settings(amqp_url, sqlite_url, **SHORT_LEASE)
    async with Producer(amqp_url) as producer:
        await dies_at(Checkpoint.AFTER_CONFIRM, chosen, producer, marks, "fails_at_gate")
        async with Daemon(chosen):
            found = await all_are("succeeded", sqlite_url, 1)
            assert found["a"]["attempt"] == 2
            assert [mark.attempt for mark in marks.all][-1] == 2
            assert [mark.attempt for mark in marks.all].count(2) == 1
        assert await producer.depth("jobs.default.dead") == 0


async def test_a_daemon_dies_at_the_pass_that_it_was_told(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    chosen = settings(amqp_url, sqlite_url, FAULTS__CRASH_AT="after_commit", FAULTS__CRASH_AFTER="3")
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for key in ("a", "b", "c"):
            await producer.submit("mark", marks.payload, key)
        assert await daemon.wait() == -signal.SIGKILL
        assert {row["status"] for row in (await all_are("succeeded", sqlite_url, 3)).values()} == {"succeeded"}


async def dies_at(checkpoint: Checkpoint, chosen: dict[str, str], producer: Producer, marks: Marks, kind: str) -> None:
    """Run a job in a daemon that kills itself on the way."""
    async with Daemon(chosen | {"FAULTS__CRASH_AT": str(checkpoint)}) as daemon:
        await daemon.ready()
        await producer.submit(kind, marks.payload, "a")
        assert await daemon.wait() == -signal.SIGKILL
