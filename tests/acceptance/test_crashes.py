"""The daemon is killed in mid-run, or a child under it."""

import os
import signal

from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.pools import gone
from tests.support.producer import Producer
from tests.support.rows import all_are
from tests.support.settings import settings

SHORT_LEASE = {"STORE__LEASE_SECONDS": "3"}


async def test_a_daemon_killed_in_mid_run_loses_nothing_and_leaves_nobody_behind(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    keys = [f"job-{number}" for number in range(60)]
    chosen = settings(amqp_url, sqlite_url, **SHORT_LEASE)
    async with Producer(amqp_url) as producer:
        async with Daemon(chosen) as daemon:
            await daemon.ready()
            for key in keys[:40]:
                await producer.submit("mark", marks.payload, key)
            await producer.submit("wait_for_gate", marks.payload, "running")
            for key in keys[40:]:
                await producer.submit("mark", marks.payload, key)
            await marks.of("running")
            family = daemon.children
            daemon.kill()
            assert await daemon.wait() == -signal.SIGKILL
            await gone(family, within=2)
        marks.open_gate()
        async with Daemon(chosen) as daemon:
            found = await all_are("succeeded", sqlite_url, len(keys) + 1)
            assert set(found) == {*keys, "running"}
            assert all(row["result"] == f'"{key}"' for key, row in found.items())
            assert {row["attempt"] for row in found.values()} == {1}, "a dead daemon is nobody's attempt"
            assert found["running"]["crashes"] == 1
            daemon.terminate()
            assert await daemon.wait() == 0
        assert await producer.depth("jobs.default") == 0
        assert await producer.depth("jobs.default.dead") == 0


async def test_a_child_killed_from_outside_charges_only_the_job_that_ran_there(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, sqlite_url, POOL__PROCESSES="1")
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("wait_for_gate", marks.payload, "running")
        (running,) = await marks.of("running")
        for key in ("next", "after"):
            await producer.submit("mark", marks.payload, key)
        os.kill(running.pid, signal.SIGKILL)
        marks.open_gate()
        found = await all_are("succeeded", sqlite_url, 3)
        assert {key: row["attempt"] for key, row in found.items()} == {"running": 2, "next": 1, "after": 1}
        (retry,) = await daemon.logged(lambda line: line.get("disposition") == "retry")
        assert retry["key"] == "running"
        assert retry["code"] == "worker_crashed"
        assert await daemon.metric("consumer_child_exits_total", reason="crash") == 1
        assert await producer.depth("jobs.default.dead") == 0


async def test_a_job_under_which_daemons_die_is_dead_lettered_after_the_limit(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, sqlite_url, **SHORT_LEASE, JOBS__CRASH_LIMIT="2")
    async with Producer(amqp_url) as producer:
        for executions in (1, 2):
            async with Daemon(chosen) as daemon:
                await daemon.ready()
                if executions == 1:
                    await producer.submit("wait_for_gate", marks.payload, "killer")
                await marks.of("killer", executions)
        async with Daemon(chosen):
            (letter,) = await producer.dead_letters()
            assert letter.headers["consumer-code"] == "worker_crashed"
            found = await all_are("failed", sqlite_url, 1)
            assert found["killer"]["error_code"] == "worker_crashed"
