"""What jobs print and log stands in the daemon's log, with the names of the job, and nowhere else."""

import json

import pytest

from tests.support.daemon import Daemon, Line
from tests.support.producer import Producer
from tests.support.settings import settings

pytestmark = pytest.mark.any_broker


def said(line: Line) -> bool:
    return line["event"] == "job said" and "key" in line


async def test_what_a_job_prints_and_logs_is_in_the_daemons_log_with_kind_and_key(
    amqp_url: str, sqlite_url: str
) -> None:
    chosen = settings(
        amqp_url, sqlite_url, JOBS__MODULES="talking,waiting", JOBS__MAX_LOG_BYTES="5000", LOG__FORMAT="json"
    )
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.submit("says_in_all_ways", "it", "order-7")
        lines = await daemon.logged(said, count=9)
        assert {(line["kind"], line["key"], line["attempt"]) for line in lines} == {("says_in_all_ways", "order-7", 1)}
        assert {(line["stream"], line["level"], line["text"]) for line in lines} == {
            ("stdout", "info", "it stdout"),
            ("stdout", "info", "it without a line feed"),
            ("stderr", "info", "it stderr"),
            ("consumer.job", "warning", "it logger"),
            ("a.library", "info", "it library"),
            ("output", "info", "it os.write"),
            ("output", "info", "it puts"),
            ("output", "info", "it program"),
            ("output", "info", "it at the end"),
        }

        await producer.submit("async_prints", "it", "order-8")
        lines = await daemon.logged(lambda line: said(line) and line["key"] == "order-8", count=2)
        assert [(line["kind"], line["text"]) for line in lines] == [
            ("async_prints", "it printed"),
            ("async_prints", "it logged"),
        ]

        await producer.submit("floods", {"way": "yes", "bytes": 10_000_000}, "order-9")
        await daemon.logged(lambda line: line.get("kind") == "floods" and line.get("disposition") == "complete")
        flood = [line for line in daemon.logs if said(line) and line["kind"] == "floods"]
        assert sum(len(line["text"]) for line in flood[:-1]) < 5000
        assert "max_log_bytes" in flood[-1]["text"]
        daemon.terminate()
        assert await daemon.wait() == 0
    assert all(json.loads(line) for line in daemon.output.splitlines()), "nothing else is on stdout or stderr"
