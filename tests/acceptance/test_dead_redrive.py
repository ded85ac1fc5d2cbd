"""Dead letters back to work: each once, whatever interrupts it; the others stay in their order."""

import asyncio
import json
import signal
import sys

from consumer.core.letter_index import Wanted
from consumer.core.letters import State
from schemas.codes import Code
from tests.support.command import PATIENCE, Done, consumer, environment
from tests.support.daemon import Daemon
from tests.support.graves import Graves
from tests.support.leash import ROOT
from tests.support.marks import Marks
from tests.support.rows import all_are
from tests.support.settings import settings

COUNT = 300


async def redrive(chosen: dict[str, str], *arguments: str) -> Done:
    return await consumer("dead", "redrive", *arguments, settings=chosen)


def keys(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


async def test_what_matches_runs_as_the_next_generation_and_the_others_stay_in_their_order(
    amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, postgres_url)
    async with Graves(amqp_url, postgres_url) as graves:
        stay: list[str] = []
        for part in range(3):
            stay += await graves.bury(keys(f"stay{part}-", COUNT // 2), code=Code.EXPIRED)
            await graves.bury(keys(f"go{part}-", COUNT // 6), "mark", marks.payload)
        spent = await graves.bury(["spent"], "mark", marks.payload, generation=5)
        planned = await redrive(chosen, "--kind", "mark", "--dry-run", "--json")
        assert json.loads(planned.out) == {"would_be_redriven": COUNT // 2, "redriven_too_often": 1}
        assert await graves.depth() == len(stay) + COUNT // 2 + 1
        done = await redrive(chosen, "--kind", "mark", "--json")
        assert (done.code, json.loads(done.out)) == (0, {"redriven": COUNT // 2, "redriven_too_often": 1})
        async with Daemon(chosen):
            rows = await all_are("succeeded", postgres_url, COUNT // 2)
        assert {(row["generation"], row["attempt"]) for row in rows.values()} == {(1, 1)}
        assert len(marks.all) == COUNT // 2
        assert await graves.listed() == len(stay) + 1
        assert await graves.index.count(Wanted("default", State.REDRIVEN)) == COUNT // 2
        assert [letter.id for letter in await graves.dig_up(len(stay) + 1)] == stay + spent


async def test_a_redrive_that_is_killed_or_told_to_stop_loses_nothing_and_runs_nothing_twice(
    amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, postgres_url)
    async with Graves(amqp_url, postgres_url) as graves:
        await graves.bury(keys("k", COUNT), "mark", marks.payload)
        async with Daemon(chosen) as daemon:
            await daemon.ready()
            for number, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 1), (signal.SIGINT, 1)):
                before = len(marks.all)
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "consumer", "dead", "redrive", "--rate", "60"),
                    cwd=ROOT,
                    env=environment(chosen),
                    stderr=asyncio.subprocess.PIPE,
                )
                await marks.more_than(before + 10)
                process.send_signal(number)
                _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
                assert process.returncode == code
                assert number is signal.SIGKILL or b"interrupted; " in said
            assert (await redrive(chosen)).code == 0
            await all_are("succeeded", postgres_url, COUNT)
        assert sorted(mark.key for mark in marks.all) == sorted(keys("k", COUNT))
        assert await graves.depth() == 0


async def test_two_redrives_at_once_share_the_letters_and_send_none_twice(
    amqp_url: str, postgres_url: str, marks: Marks
) -> None:
    chosen = settings(amqp_url, postgres_url)
    async with Graves(amqp_url, postgres_url) as graves:
        await graves.bury(keys("k", COUNT), "mark", marks.payload)
        both = await asyncio.gather(*(redrive(chosen, "--rate", "300", "--json") for _ in range(2)))
        sent = [json.loads(done.out)["redriven"] for done in both]
        assert sum(sent) == COUNT
        assert await graves.work() == COUNT
        assert (await graves.depth(), await graves.listed()) == (0, 0)


async def test_a_canary_that_succeeds_lets_the_others_follow(amqp_url: str, postgres_url: str, marks: Marks) -> None:
    chosen = settings(amqp_url, postgres_url)
    async with Graves(amqp_url, postgres_url) as graves, Daemon(chosen) as daemon:
        await graves.bury(keys("k", 20), "mark", marks.payload)
        await daemon.ready()
        done = await redrive(chosen, "--canary", "3", "--limit", "10", "--json")
        assert (done.code, json.loads(done.out)["redriven"]) == (0, 10)
        await all_are("succeeded", postgres_url, 10)
        assert await graves.depth() == 10


async def test_a_canary_that_fails_or_says_nothing_holds_back_the_others(amqp_url: str, postgres_url: str) -> None:
    chosen = settings(amqp_url, postgres_url)
    async with Graves(amqp_url, postgres_url) as graves:
        ids = await graves.bury(keys("k", 100), "reject")
        silent = await redrive(chosen, "--canary", "2", "--canary-timeout", "0.5")
        assert silent.code == 1
        assert "2 of 2 redriven letters did not succeed within 0.5 s" in silent.err
        assert ids[0] in silent.err
        async with Daemon(chosen) as daemon:
            await daemon.ready()
            failed = await redrive(chosen, "--canary", "1")
            assert failed.code == 1
            assert f"letter {ids[2]} (reject k2) failed again (rejected: " in failed.err
            await all_are("failed", postgres_url, 3)
        left = await graves.dig_up(100)
        assert [letter.id for letter in left[:97]] == ids[3:]
        assert {letter.key for letter in left[97:]} == set(keys("k", 3))


async def test_a_limit_sends_the_oldest_and_the_rest_is_as_it_was(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Graves(amqp_url, sqlite_url) as graves:
        ids = await graves.bury(keys("k", 50))
        done = await redrive(chosen, "--limit", "7", "--json")
        assert json.loads(done.out)["redriven"] == 7
        assert json.loads((await redrive(chosen, ids[20], ids[30], "--json")).out)["redriven"] == 2
        assert "is redriven: it is in the queue no more" in (await redrive(chosen, ids[20])).err
        left = [letter for number, letter in enumerate(ids) if number >= 7 and number not in (20, 30)]
        assert [letter.id for letter in await graves.dig_up(len(left))] == left
