"""What can't be done is kept in the dead-letter queue under its code, byte for byte, and holds up nobody."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from schemas.codes import Code
from tests.support.daemon import Daemon
from tests.support.producer import Producer
from tests.support.rows import rows
from tests.support.settings import settings

MAX_BYTES = 100_000
LIMITS = {
    "MESSAGE__MAX_BYTES": str(MAX_BYTES),
    "JOBS__UNKNOWN_KIND_GRACE_SECONDS": "0",
    "JOBS__MAX_RESULT_BYTES": "1000",
    "POOL__MEMORY_LIMIT": str(512 * 1024 * 1024),
    "POOL__PROCESSES": "1",
}
PROMPTLY = 3.0
"""Seconds in which the next good message is done."""
LATER_ISSUES = {Code.EXPIRED, Code.WAIT_TIMEOUT, Code.CANCELLED, Code.COLLATERAL}
"""Codes that no part of the daemon gives yet."""


@dataclass(frozen=True, slots=True)
class Case:
    """A message, by the properties in which it differs from a good one, and the code that it ends under."""

    code: Code
    body: bytes = b"{}"
    properties: Mapping[str, Any] = field(default_factory=dict)


@asynccontextmanager
async def strict_daemon(amqp_url: str, store_url: str) -> AsyncIterator[tuple[Daemon, Producer]]:
    async with Daemon(settings(amqp_url, store_url, **LIMITS)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        yield daemon, producer


def case(code: Code, body: bytes = b"{}", **properties: Any) -> Case:
    return Case(code, body, properties)


MALFORMED = [
    case(Code.INVALID_JSON, b'{"n": '),
    case(Code.INVALID_JSON, b""),
    case(Code.INVALID_JSON, b"{} {}"),
    case(Code.INVALID_JSON, b"[NaN]"),
    case(Code.INVALID_JSON, b"[-Infinity]"),
    case(Code.INVALID_JSON, b'{"a": 1, "a": 2}'),
    case(Code.INVALID_JSON, b'"\xff\xfe"'),
    case(Code.INVALID_JSON, b'"\\ud800"'),
    case(Code.INVALID_JSON, b"not an event", content_type="application/cloudevents+json"),
    case(Code.INVALID_JSON, b"[1e400]"),
    case(Code.NUMBER_OUT_OF_RANGE, b"[" + b"9" * 5000 + b"]"),
    case(Code.TOO_DEEP, b"[" * 200 + b"]" * 200),
    case(Code.TOO_DEEP, b"[" * 50_000 + b"]" * 50_000),
    case(Code.UNSUPPORTED_CONTENT_TYPE, content_type="text/xml"),
    case(Code.UNSUPPORTED_CONTENT_TYPE, content_type="application/json; charset=utf-16"),
    case(Code.UNSUPPORTED_ENCODING, content_encoding="br"),
    case(Code.UNSUPPORTED_ENCODING, gzip.compress(b"{}")[:-4], content_encoding="gzip"),
    case(Code.TOO_LARGE, b'"' + b"x" * MAX_BYTES + b'"'),
    case(Code.TOO_LARGE, gzip.compress(b" " * (MAX_BYTES + 1)), content_encoding="gzip"),
    case(Code.MISSING_KIND, type=None),
    case(Code.MISSING_KIND, type="a\x1b[2Jkind"),
    case(Code.MISSING_KEY, b'{"type": "echo", "source": "/a", "data": 1}', content_type="application/cloudevents+json"),
    case(Code.MISSING_KEY, headers={"idempotency-key": "k" * 501}),
    case(Code.MISSING_KEY, headers={"idempotency-key": "a\x07key"}),
    case(Code.UNKNOWN_KIND, type="nobody.knows"),
    case(Code.INVALID_PAYLOAD, b'{"day": "2026-13-01", "count": "1"}', type="strict"),
    case(Code.DEADLINE_EXCEEDED, headers={"deadline-ms": 1}),
]
RUN = [
    case(Code.REJECTED, type="reject"),
    case(Code.REJECTED, type="always_fails"),
    case(Code.ATTEMPTS_EXHAUSTED, type="gives_up"),
    case(Code.EXECUTION_TIMEOUT, type="overruns"),
    case(Code.WORKER_CRASHED, type="dies"),
    case(Code.OUT_OF_MEMORY, type="hungry"),
    case(Code.RESULT_TOO_LARGE, b"2000", type="huge"),
    case(Code.RESULT_NOT_JSON, type="nan"),
    case(Code.RESULT_NOT_JSON, type="set"),
    case(Code.DEADLINE_EXCEEDED, b"60", type="retry", headers={"deadline-ms": 4_000_000_000_000}),
]


def test_every_code_has_a_case() -> None:
    assert {one.code for one in MALFORMED + RUN} | {Code.KEY_CONFLICT} | LATER_ISSUES == set(Code)


@pytest.mark.parametrize("cases", [pytest.param(MALFORMED, id="malformed"), pytest.param(RUN, id="run")])
async def test_what_is_refused_is_kept_with_its_code_and_the_next_message_is_done_at_once(
    amqp_url: str, sqlite_url: str, cases: list[Case]
) -> None:
    async with strict_daemon(amqp_url, sqlite_url) as (daemon, producer):
        await good_one(daemon, producer, "warm-up")
        for number, one in enumerate(cases):
            wanted = _properties(one, f"bad-{number}")
            await producer.publish(one.body, **wanted)
            (letter,) = await producer.dead_letters()
            told = f"{one.code}, {one.body[:60]!r}: {letter.headers}"
            assert letter.headers["consumer-code"] == one.code, told
            assert letter.body == one.body, told
            assert {name: getattr(letter, name) for name in wanted if name != "headers"} == {
                name: value for name, value in wanted.items() if name != "headers"
            }, told
            assert wanted["headers"].items() <= letter.headers.items(), told
            assert letter.headers["consumer-origin-queue"] == "jobs.default"
            assert letter.delivery_mode == 2
            started = time.monotonic()
            await good_one(daemon, producer, f"good-{number}")
            assert time.monotonic() - started < PROMPTLY, told
        for code in {one.code for one in cases}:
            count = sum(one.code == code for one in cases)
            assert await daemon.metric("consumer_dead_letters_total", code=code) == count, code


async def good_one(daemon: Daemon, producer: Producer, key: str) -> None:
    await producer.submit("echo", {}, key)
    (line,) = await daemon.logged(lambda line: line.get("key") == key)
    assert line["disposition"] == "complete"


def _properties(one: Case, key: str) -> dict[str, Any]:
    """As the case wants them, and good ones else. Its far deadline becomes one that a retry would miss."""
    properties = {"content_type": "application/json", "type": "echo", "message_id": key, "headers": {}}
    properties |= one.properties
    if properties["type"] == "retry":
        properties["headers"] = {"deadline-ms": round(time.time() * 1000) + 30_000}
    return properties


async def test_a_key_that_belongs_to_another_payload_is_refused_and_its_row_stays(
    amqp_url: str, sqlite_url: str
) -> None:
    async with strict_daemon(amqp_url, sqlite_url) as (daemon, producer):
        await producer.submit("echo", {"amount": 1}, "order-7")
        await daemon.logged(lambda line: line.get("disposition") == "complete")
        await producer.submit("echo", {"amount": 2}, "order-7")
        (letter,) = await producer.dead_letters()
        assert letter.headers["consumer-code"] == Code.KEY_CONFLICT
        assert letter.body == b'{"amount": 2}'
        row = (await rows(sqlite_url))["order-7"]
        assert (row["status"], row["result"]) == ("succeeded", '{"amount":1}')


async def test_no_value_of_a_refused_payload_gets_into_headers_or_logs(amqp_url: str, sqlite_url: str) -> None:
    async with strict_daemon(amqp_url, sqlite_url) as (daemon, producer):
        secret = "4929-1234-5678"
        await producer.submit("strict", {"day": secret, "count": secret}, "order-8")
        await producer.publish(f'{{"card": "{secret}" '.encode(), type="echo", message_id="order-9")
        letters = await producer.dead_letters(2)
        await daemon.logged(lambda line: line.get("disposition") == "dead_letter", count=2)
        assert secret not in daemon.output
        assert not [letter.headers for letter in letters if secret in str(letter.headers)]
        invalid = next(letter for letter in letters if letter.headers["consumer-code"] == Code.INVALID_PAYLOAD)
        assert "day: " in str(invalid.headers["consumer-error-message"])


async def test_an_unknown_kind_waits_out_its_grace_without_a_charge(amqp_url: str, sqlite_url: str) -> None:
    chosen = settings(amqp_url, sqlite_url) | LIMITS | {"JOBS__UNKNOWN_KIND_GRACE_SECONDS": "1"}
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        started = time.monotonic()
        await producer.submit("nobody.knows", {}, "early")
        (letter,) = await asyncio.wait_for(producer.dead_letters(), 10)
        assert time.monotonic() - started > 0.9
        assert letter.headers["consumer-code"] == Code.UNKNOWN_KIND
        assert letter.headers["consumer-attempt"] == 1
        assert await daemon.metric("consumer_jobs_settled_total", disposition="defer") >= 1
