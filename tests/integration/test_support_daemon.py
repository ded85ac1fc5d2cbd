import signal
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.producer import Producer
from tests.support.waiting import until


def settings(amqp_url: str, sqlite_url: str) -> dict[str, str]:
    return {"BROKER__URL": amqp_url, "STORE__URL": sqlite_url, "POOL__PROCESSES": "1"}


async def test_a_daemon_is_watched_by_its_probes_logs_and_metrics(amqp_url: str, sqlite_url: str) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("primes.count", {"n": 10}, "a-key")
        (line,) = await daemon.logged(lambda line: line.get("key") == "a-key")
        assert line["kind"] == "primes.count"
        assert (await daemon.get("/nowhere"))[0] == 404
        assert await daemon.metric("process_resident_memory_bytes") > 0
        daemon.terminate()
        assert await daemon.wait() == 0


async def test_a_daemon_that_is_killed_takes_its_children_along(amqp_url: str, sqlite_url: str) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon:
        await daemon.ready()
        children = daemon.children
        assert children
        daemon.kill()
        assert await daemon.wait() == -signal.SIGKILL
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), "they are gone", within=2)


async def test_a_daemon_that_ends_early_is_reported_with_its_output(sqlite_url: str) -> None:
    async with Daemon({"STORE__URL": sqlite_url, "NO_SUCH_SETTING": "1"}) as daemon:
        with pytest.raises(AssertionError, match=r"(?is)ended with 2.*no_such_setting"):
            await daemon.ready()
