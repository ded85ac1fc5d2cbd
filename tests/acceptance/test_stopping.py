"""The daemon is told to stop: by SIGTERM, early and late, with the broker and the store there and away."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.pools import gone
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rows import all_are, rows
from tests.support.settings import settings
from tests.support.waiting import eventually, free_port

PROMPTLY = 5.0
"""Seconds in which a daemon without running jobs ends."""


async def ends(daemon: Daemon, within: float = PROMPTLY) -> int:
    async with asyncio.timeout(within):
        return await daemon.wait()


async def depth_is(producer: Producer, wanted: int) -> None:
    async def so() -> bool:
        return await producer.depth("jobs.default") == wanted

    await eventually(so, f"{wanted} messages are ready in the queue")


async def in_hand(daemon: Daemon, count: int) -> None:
    async def so() -> bool:
        return await daemon.metric("consumer_messages_received_total") >= count

    await eventually(so, f"{count} deliveries are in hand")


async def test_running_jobs_finish_while_unstarted_ones_are_back_in_the_queue(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for key in ("one", "two", "three", "four", "five"):
            await producer.submit("wait_for_gate", marks.payload, key)
        await marks.of("one")
        await marks.of("two")
        await in_hand(daemon, 5)
        daemon.terminate()
        await depth_is(producer, 3)
        assert daemon.running
        assert {mark.key for mark in marks.all} == {"one", "two"}
        assert (await daemon.get("/readyz"))[0] == 503
        assert await daemon.metric("consumer_draining") == 1
        marks.open_gate()
        assert await ends(daemon) == 0
        assert await producer.depth("jobs.default") == 3
        statuses = {key: row["status"] for key, row in (await rows(sqlite_url)).items()}
        assert (statuses.pop("one"), statuses.pop("two")) == ("succeeded", "succeeded")
        assert set(statuses.values()) <= {"pending"}


async def test_a_second_signal_skips_the_waiting(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("wait_for_gate", marks.payload, "long")
        (running,) = await marks.of("long")
        daemon.terminate()
        await daemon.logged(lambda line: line.get("phase") == "draining")
        daemon.terminate()
        assert await ends(daemon) == 0
        await gone([running.pid])
        await depth_is(producer, 1)
        assert (await rows(sqlite_url))["long"]["status"] == "pending"


async def test_a_job_that_outlasts_the_drain_is_interrupted_and_not_charged(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, sqlite_url, SHUTDOWN__DRAIN_SECONDS="0.5")
    async with Producer(amqp_url) as producer:
        async with Daemon(chosen) as daemon:
            await daemon.ready()
            await producer.submit("wait_for_gate", marks.payload, "long")
            await marks.of("long")
            daemon.terminate()
            assert await ends(daemon) == 0
        marks.open_gate()
        async with Daemon(chosen):
            found = await all_are("succeeded", sqlite_url, 1)
            assert [mark.attempt for mark in marks.all] == [1, 1]
            assert (found["long"]["attempt"], found["long"]["crashes"]) == (1, 0)


@pytest.mark.any_broker
@pytest.mark.parametrize("milliseconds", [0, 100, 300, 600, 1000])
async def test_an_early_signal_ends_the_start(amqp_url: str, sqlite_url: str, milliseconds: int) -> None:
    """Early: from when Python has installed the handler, which is when the kernel can tell us."""
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon:

        async def is_caught() -> bool:
            return catches_sigterm(daemon.pid)

        await eventually(is_caught, "the signal is caught")
        await asyncio.sleep(milliseconds / 1000)
        family = daemon.children
        daemon.terminate()
        assert await ends(daemon) == 0
        await gone(family)
        assert "Traceback" not in daemon.output


def catches_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt")).split()[1]
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.any_broker
async def test_a_signal_ends_the_import_of_job_modules(amqp_url: str, sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text(
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'importing')!r}).touch()\ntime.sleep(30)\n"
    )
    chosen = settings(amqp_url, sqlite_url, JOBS__MODULES="slow_module", JOBS__PATH=str(tmp_path))
    async with Daemon(chosen) as daemon:

        async def importing() -> bool:
            return (tmp_path / "importing").exists()

        await eventually(importing, "the module is being imported")
        family = daemon.children
        daemon.terminate()
        assert await ends(daemon) == 0
        await gone(family)


@pytest.mark.any_broker
async def test_a_signal_ends_a_daemon_that_waits_for_the_broker(sqlite_url: str) -> None:
    nowhere = f"amqp://guest:guest@127.0.0.1:{free_port()}/"
    async with Daemon(settings(nowhere, sqlite_url)) as daemon:
        await daemon.logged(lambda line: "no session with the broker" in line["event"])
        family = daemon.children
        daemon.terminate()
        assert await ends(daemon) == 0
        await gone(family)


@pytest.mark.any_broker
async def test_a_signal_ends_a_daemon_that_waits_for_the_store(amqp_url: str) -> None:
    nowhere = f"postgresql://postgres@127.0.0.1:{free_port()}/nothing"
    async with Daemon(settings(amqp_url, nowhere)) as daemon:
        await daemon.logged(lambda line: "the store is away" in line["event"])
        daemon.terminate()
        assert await ends(daemon) == 0


async def test_a_signal_ends_a_daemon_whose_broker_does_not_answer(amqp_url: str, sqlite_url: str) -> None:
    async with Proxy(amqp_url) as proxy:
        proxy.stall()
        async with Daemon(settings(proxy.url, sqlite_url)) as daemon:

            async def connecting() -> bool:
                return proxy.connections > 0

            await eventually(connecting, "the daemon connects")
            daemon.terminate()
            assert await ends(daemon) == 0


async def test_a_signal_ends_a_daemon_that_has_lost_the_broker(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    async with Proxy(amqp_url) as proxy, Daemon(settings(proxy.url, sqlite_url)) as daemon:
        await daemon.ready()
        async with Producer(amqp_url) as producer:
            await producer.submit("wait_for_gate", marks.payload, "running")
            (running,) = await marks.of("running")
            proxy.refuse()
            proxy.cut()
            await daemon.logged(lambda line: line["event"] == "session ended")
            marks.open_gate()
            daemon.terminate()
            assert await ends(daemon) == 0
            await gone([running.pid])
            assert (await rows(sqlite_url))["running"]["status"] == "succeeded", "its result is kept"
            await depth_is(producer, 1)


@pytest.mark.any_broker
async def test_a_signal_ends_a_daemon_that_has_lost_the_store(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    """A result waits for the store until the drain deadline, and no longer."""
    async with (
        Proxy(postgres_url) as proxy,
        Daemon(settings(amqp_url, proxy.url, SHUTDOWN__DRAIN_SECONDS="1")) as daemon,
    ):
        await daemon.ready()
        async with Producer(amqp_url) as producer:
            await producer.submit("wait_for_gate", marks.payload, "running")
            (running,) = await marks.of("running")
            proxy.refuse()
            proxy.cut()
            daemon.terminate()
            marks.open_gate()
            assert await ends(daemon, within=10) == 0
            await gone([running.pid])
            await depth_is(producer, 1)


@pytest.mark.any_broker
async def test_an_idle_daemon_ends_at_once(amqp_url: str, sqlite_url: str) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon:
        await daemon.ready()
        family = daemon.children
        os.kill(daemon.pid, signal.SIGINT)
        assert await ends(daemon) == 0
        await gone(family)
        assert [line["phase"] for line in daemon.logs if line["event"] == "phase"] == [
            "consuming",
            "draining",
            "stopped",
        ]
