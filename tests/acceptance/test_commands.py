"""What the commands say, with right and with wrong input: their output, their exit codes, and no control characters."""

import json
import re
from asyncio import gather
from typing import Any

import pytest

from tests.support.command import Done, consumer
from tests.support.daemon import Daemon
from tests.support.producer import Producer
from tests.support.rows import all_are
from tests.support.settings import settings
from tests.support.waiting import free_port

UNWELL, UNKNOWN, AWAY = 1, 1, 1
WRONG, MODULES, TOPOLOGY = 2, 3, 4
UNPRINTABLE = re.compile(r"[^\S\n\t ]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What could drive a terminal or turn text round."""


def good(done: Done) -> str:
    assert (done.code, done.err) == (0, ""), done
    return done.out


def as_json(done: Done) -> Any:
    return json.loads(good(done))


def refused(done: Done, code: int, *words: str) -> None:
    """One sentence on stderr and nothing on stdout."""
    assert (done.code, done.out) == (code, ""), done
    assert done.err.startswith("consumer: "), done
    assert done.err.count("\n") == 1, done
    for word in words:
        assert word in done.err, done


async def test_a_job_is_submitted_run_and_looked_up(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    submitted = as_json(await consumer("submit", "echo", '{"a": 1}', "--key", "k1", "--json", settings=chosen))
    assert (submitted["kind"], submitted["key"], submitted["status"]) == ("echo", "k1", "pending")
    assert "pending" in good(await consumer("status", "echo", "k1", settings=chosen))
    async with Daemon(chosen):
        await all_are("succeeded", sqlite_url, 1)
    status = as_json(await consumer("status", "echo", "k1", "--json", settings=chosen))
    assert (status["status"], status["attempt"], status["result"]) == ("succeeded", 1, {"a": 1})
    assert "succeeded" in good(await consumer("status", "echo", "k1", settings=chosen))


@pytest.mark.any_broker
async def test_a_payload_may_come_from_a_file_or_from_standard_input(
    amqp_url: str, sqlite_url: str, tmp_path: Any
) -> None:
    chosen = settings(amqp_url, sqlite_url)
    (tmp_path / "payload.json").write_text('["from a file"]')
    good(await consumer("submit", "echo", f"@{tmp_path}/payload.json", "--key", "file", settings=chosen))
    good(await consumer("submit", "echo", "-", "--key", "stdin", settings=chosen, stdin=b'["from stdin"]'))
    async with Daemon(chosen):
        found = await all_are("succeeded", sqlite_url, 2)
    assert {key: row["result"] for key, row in found.items()} == {"file": '["from a file"]', "stdin": '["from stdin"]'}


@pytest.mark.any_broker
async def test_a_job_submitted_twice_runs_once(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        good(await consumer("submit", "echo", "1", "--key", "k1", settings=chosen))
        await all_are("succeeded", sqlite_url, 1)
        again = as_json(await consumer("submit", "echo", "1", "--key", "k1", "--json", settings=chosen))
        assert (again["status"], again["result"]) == ("succeeded", 1)
        refused(await consumer("submit", "echo", "2", "--key", "k1", settings=chosen), WRONG, "another payload")
        assert await producer.depth("jobs.default") == 0
        assert await daemon.metric("consumer_messages_received_total") == 1


async def test_a_long_key_gets_through(amqp_url: str, sqlite_url: str) -> None:
    """An AMQP property holds 255 bytes, a key 500 characters."""
    chosen, key = settings(amqp_url, sqlite_url), "ü" * 500
    good(await consumer("submit", "echo", "1", "--key", key, settings=chosen))
    async with Daemon(chosen):
        assert set(await all_are("succeeded", sqlite_url, 1)) == {key}


@pytest.mark.any_broker
async def test_what_a_handler_said_can_t_drive_the_terminal(amqp_url: str, sqlite_url: str, tmp_path: Any) -> None:
    (tmp_path / "odd.py").write_text(
        "from typing import Any\n"
        "from consumer import Reject, job\n"
        "@job('odd.result')\ndef result(payload: Any) -> Any: return payload\n"
        "@job('odd.error')\ndef error(payload: Any) -> None: raise Reject(payload)\n"
    )
    chosen = settings(amqp_url, sqlite_url, JOBS__MODULES="odd", JOBS__PATH=str(tmp_path))
    text = "\x1b[2J\x07\x9b\u202eevil\r\nline"
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for kind in ("odd.result", "odd.error"):
            await producer.submit(kind, text, kind)
        await daemon.logged(lambda line: line["event"] == "job settled", count=2)
    for kind in ("odd.result", "odd.error"):
        shown = good(await consumer("status", kind, kind, settings=chosen))
        assert "evil" in shown
        assert not UNPRINTABLE.search(shown), repr(shown)
    assert as_json(await consumer("status", "odd.result", "odd.result", "--json", settings=chosen))["result"] == text


async def test_the_topology_is_checked_and_declared(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    missing, told = await gather(
        consumer("topology", "check", settings=chosen), consumer("topology", "check", "--json", settings=chosen)
    )
    assert (missing.code, missing.err) == (TOPOLOGY, "")
    for words in ("FAULT", "exchange 'jobs'", "not on the broker", "consumer topology declare"):
        assert words in missing.out, missing
    assert told.code == TOPOLOGY
    assert {"severity", "what", "found", "wanted", "way_out"} == set(json.loads(told.out)["findings"][0])
    assert as_json(await consumer("topology", "declare", "--json", settings=chosen))["faults"] == []
    plain, told, other = await gather(
        consumer("topology", "check", settings=chosen),
        consumer("topology", "check", "--json", settings=chosen),
        consumer("topology", "declare", settings=chosen | {"TOPOLOGY__DELIVERY_LIMIT": "7"}),
    )
    assert "as wanted" in good(plain)
    assert [finding["severity"] for finding in as_json(told)["findings"]] == ["not looked at"]
    refused(other, TOPOLOGY, "x-delivery-limit: found 100, wanted 7", "deleted")


async def test_the_doctor_finds_nothing_where_all_is_well(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url)
    good(await consumer("topology", "declare", settings=chosen))
    told, plain = await gather(consumer("doctor", "--json", settings=chosen), consumer("doctor", settings=chosen))
    found = as_json(told)
    assert set(found) == {"job modules", "store", "broker", "topology"}
    assert all(part["well"] for part in found.values()), found
    assert "RabbitMQ" in found["broker"]["detail"]
    assert "FAULT" not in good(plain)


@pytest.mark.any_broker
async def test_the_doctor_names_each_part_that_is_unwell() -> None:
    port = free_port()
    nowhere = settings(
        f"amqp://guest:guest@127.0.0.1:{port}/",
        f"postgresql://postgres:S3cr3t@127.0.0.1:{port}/x",
        JOBS__MODULES="no_such_module",
    )
    done = await consumer("doctor", "--json", settings=nowhere)
    assert done.code == UNWELL
    found = json.loads(done.out)
    assert not any(part["well"] for part in found.values()), found
    assert "no_such_module" in found["job modules"]["detail"]
    told = await consumer("doctor", settings=nowhere)
    assert (told.code, told.out.count("FAULT")) == (UNWELL, 4), told
    assert "S3cr3t" not in done.out + done.err + told.out + told.err
    assert "Traceback" not in done.err + told.err


@pytest.mark.any_broker
async def test_commands_say_in_one_sentence_that_something_is_away(sqlite_url: str) -> None:
    nowhere = settings(f"amqp://guest:S3cr3t@127.0.0.1:{free_port()}/", sqlite_url)
    refused(await consumer("submit", "echo", "1", settings=nowhere), AWAY, "broker")
    refused(await consumer("topology", "check", settings=nowhere), AWAY, "broker")
    no_store = nowhere | {"STORE__URL": f"postgresql://postgres:S3cr3t@127.0.0.1:{free_port()}/x"}
    done = await consumer("status", "echo", "k", settings=no_store)
    refused(done, AWAY, "store")
    assert "S3cr3t" not in done.err
