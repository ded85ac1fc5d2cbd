"""Looking at dead letters changes nothing in the queue: not their order, not their number, not their counts."""

import asyncio
import json
import signal
import sys
from typing import Any

import pytest

from consumer.core.letter_index import Wanted
from consumer.dead import looks
from tests.support.command import Done, consumer, environment
from tests.support.daemon import Daemon
from tests.support.graves import Graves
from tests.support.leash import ROOT
from tests.support.producer import Producer
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.waiting import eventually

COUNT, LOOKS = 300, 50


async def dead(chosen: dict[str, str], *arguments: str, stdin: bytes = b"") -> Done:
    return await consumer("dead", *arguments, settings=chosen, stdin=stdin)


def good(done: Done) -> str:
    assert done.code == 0, done
    return done.out


def as_json(done: Done) -> Any:
    return json.loads(good(done))


async def killed_look(chosen: dict[str, str], *arguments: str) -> None:
    """A command that is killed as soon as it says its first word."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "consumer", "dead", *arguments),
        cwd=ROOT,
        env=environment(chosen),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    await process.stdout.read(1)
    process.send_signal(signal.SIGKILL)
    await process.stdout.read()
    assert await process.wait() == -signal.SIGKILL


async def test_fifty_looks_leave_order_number_and_counts_as_they_were_also_when_one_is_killed(
    amqp_url: str, postgres_url: str
) -> None:
    chosen = settings(amqp_url, postgres_url)
    async with Graves(amqp_url, postgres_url) as graves:
        ids = await graves.bury([f"k{number}" for number in range(COUNT)])
        for arguments in (("list", "--json"), ("list", "--groups", "--json"), ("show", ids[7], "--json"), ("export",)):
            good(await dead(chosen, *arguments))
            await killed_look(chosen, *arguments)
        for number in range((LOOKS - 8) // 3):
            await looks.page(graves.settings, Wanted("default"), 50, ids[-1 - number], oldest_first=False)
            await looks.groups(graves.settings, Wanted("default"), 50)
            await looks.show(graves.settings, ids[number])
        assert await graves.depth() == COUNT
        left = await graves.dig_up(COUNT)
        assert [letter.id for letter in left] == ids
        assert {letter.handed_out for letter in left} == {0}


async def test_what_a_daemon_buries_is_listed_grouped_shown_and_exported(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for number in range(3):
            await producer.submit("reject", number, f"order-{number}", headers={"tenant": bytearray(b"\xff\x1b[31m")})
        await producer.publish(b"{", type="echo", message_id="broken")
        await all_are("failed", sqlite_url, 4)
        listed = as_json(await dead(chosen, "list", "--json", "--oldest-first"))
        assert {letter["key"] for letter in listed["letters"]} == {"broken", "order-0", "order-1", "order-2"}
        assert listed["difference"] is None
        [group] = as_json(await dead(chosen, "list", "--groups", "--code", "rejected", "--json"))["groups"]
        assert (group["count"], group["error_type"], group["code"]) == (3, "consumer.worker.handler.Reject", "rejected")
        shown = as_json(await dead(chosen, "show", group["example"], "--json"))
        assert "there is no such account" in shown["error_message"]
        assert shown["traceback"].startswith("Traceback") or "Reject" in shown["traceback"]
        assert shown["history"][0]["pod"]
        assert shown["headers"]["tenant"] == {"$bytes": "/xtbMzFt"}
        assert "payload" not in shown
        assert (
            as_json(await dead(chosen, "show", group["example"], "--payload", "--json"))["payload"] == shown["key"][-1]
        )
        lines = good(await dead(chosen, "export", "--code", "rejected")).splitlines()
        assert sorted(json.loads(line)["key"] for line in lines) == ["order-0", "order-1", "order-2"]
        assert await producer.depth("jobs.default.dead") == 4


@pytest.mark.any_broker
async def test_a_table_is_for_people_and_shows_no_control_character(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Graves(amqp_url, sqlite_url) as graves:
        [letter] = await graves.bury(["evil"], error="\x1b[31mred\u202e\nnewline {key}")
        for arguments in (("list",), ("list", "--groups"), ("show", letter, "--payload")):
            said = good(await dead(chosen, *arguments))
            assert "\x1b" not in said
            assert "\u202e" not in said
            assert letter in said


async def test_index_and_queue_that_differ_are_told_and_compared_with_one_look(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Graves(amqp_url, sqlite_url) as graves, Producer(amqp_url) as producer:
        ids = await graves.bury([f"k{number}" for number in range(5)])
        queue = await producer.channel.get_queue("jobs.default.dead", ensure=False)
        for _ in range(2):  # by hand, past us, and without a consumer, which would shuffle what it gives back
            letter = await queue.get()
            assert letter is not None
            await letter.ack()
        await producer.publish(b"{}", type="echo", message_id="too late", expiration=0.001)

        async def expired() -> bool:
            return await graves.depth() == 4

        await eventually(expired, "the broker takes off what expired")
        done = await dead(chosen, "list")
        assert "has 4 letters and the index 5: 'consumer dead index' compares them" in done.err
        assert as_json(await dead(chosen, "index", "--json")) == {"found": 4, "added": 1, "missing": 2}
        assert as_json(await dead(chosen, "index", "--json")) == {"found": 4, "added": 0, "missing": 0}
        done = await dead(chosen, "list", "--json")
        assert (done.err, json.loads(done.out)["count"]) == ("", 4)
        assert [x["key"] for x in as_json(await dead(chosen, "list", "--code", "expired", "--json"))["letters"]] == [
            "too late"
        ]
        left = await graves.dig_up(3)
        assert [letter.id for letter in left] == ids[2:]
