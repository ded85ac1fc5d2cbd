"""What the doctor warns of before it happens, and that the daemon says so too where it can't wait."""

import json

import asyncpg

from tests.support.command import consumer
from tests.support.daemon import Daemon
from tests.support.settings import settings

SHORT = "the broker's ack timeout is short"


async def test_an_ack_timeout_below_a_kind_s_and_a_careless_database_are_found(
    amqp_url: str, postgres_url: str
) -> None:
    """The longest kind may run for 60 s; one more job may wait at its child."""
    session = await asyncpg.connect(postgres_url)
    name = postgres_url.rpartition("/")[2].partition("?")[0]
    await session.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    await session.close()
    chosen = settings(amqp_url, postgres_url, TOPOLOGY__DELAY_LEVELS="4", JOBS__MODULES="ordinary")
    assert (await consumer("topology", "declare", settings=chosen)).code == 0
    warned = await consumer("doctor", "--json", settings=chosen | {"BROKER__ACK_TIMEOUT_SECONDS": "100"})
    found = json.loads(warned.out)
    assert warned.code == 0, warned
    assert all(part["well"] for part in found.values())
    assert {(f["severity"], f["what"]) for f in found["store"]["findings"]} == {
        ("warning", "PostgreSQL, synchronous_commit"),
        ("warning", "PostgreSQL, fsync"),  # as in all tests
    }
    [waiting] = found["job modules"]["findings"]
    assert (waiting["severity"], waiting["found"]) == ("warning", "up to 122 s (2 runs, one after the other)")
    unwell = await consumer("doctor", settings=chosen | {"BROKER__ACK_TIMEOUT_SECONDS": "60"})
    assert unwell.code == 1
    [line] = [line for line in unwell.out.splitlines() if "FAULT" in line]
    assert "up to 61 s for sleep, wanted less than the broker's ack timeout of 60 s" in line


async def test_the_daemon_says_so_once_at_its_start(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url, JOBS__MODULES="ordinary", BROKER__ACK_TIMEOUT_SECONDS="60")
    async with Daemon(chosen) as daemon:
        await daemon.ready()
        daemon.terminate()
        assert await daemon.wait() == 0
    [line] = [line for line in daemon.logs if line["event"] == SHORT]
    assert (line["level"], "for sleep" in line["detail"]) == ("warning", True)
