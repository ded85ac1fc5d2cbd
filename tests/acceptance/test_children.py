"""What the settings say about children reaches them."""

from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.producer import Producer
from tests.support.settings import settings
from tests.support.waiting import eventually

pytestmark = pytest.mark.any_broker

JOBS = """
import os
import threading
import time
from consumer import job

@job("spins", timeout=20, max_attempts=1)
def spins(payload: int) -> None:
    while True:
        pass

@job("hungry", timeout=20, max_attempts=1)
def hungry(payload: int) -> int:
    return len(b"x" * payload)

@job("opens", timeout=20, max_attempts=1)
def opens(payload: int) -> int:
    return len([os.dup(1) for _ in range(payload)])

@job("stays", timeout=20)
def stays(payload: int) -> int:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return os.getpid()
"""
LIMITS = {
    "POOL__PROCESSES": "1",
    "POOL__MEMORY_LIMIT": "300000000",
    "POOL__CPU_LIMIT_SECONDS": "0.3",
    "POOL__OPEN_FILES": "200",
    "POOL__RECYCLE_AGE_SECONDS": "0.001",
}


async def test_jobs_meet_the_limits_of_the_settings(amqp_url: str, sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "deployed.py").write_text(JOBS)
    chosen = settings(amqp_url, sqlite_url, JOBS__MODULES="deployed", JOBS__PATH=str(tmp_path), **LIMITS)
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("spins", 1, "cpu")
        await producer.submit("hungry", 500_000_000, "memory")
        await producer.submit("opens", 500, "files")
        letters = await producer.dead_letters(3)
        codes = {letter.message_id: letter.headers["consumer-code"] for letter in letters}
        assert codes == {"cpu": "execution_timeout", "memory": "out_of_memory", "files": "attempts_exhausted"}
        await producer.submit("stays", 1, "leftovers")
        await daemon.logged(lambda line: line["event"] == "child_damaged" and line["left"] == "threads")

        async def recycled() -> bool:
            return await daemon.metric("consumer_child_exits_total", reason="recycle") >= 1

        await eventually(recycled, "a child that had served long enough is replaced")
