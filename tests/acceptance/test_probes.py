"""Whether the probes tell the truth, and what is there to scrape."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from schemas.codes import Code
from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.producer import Producer
from tests.support.rows import all_are
from tests.support.settings import LEVELS, settings
from tests.support.waiting import eventually

KINDS = ("echo", "mark", "_unknown")
NOT_KNOWN_YET = {"consumer_handler_exceptions", "consumer_queue_messages_ready", "consumer_queue_consumers"}
"""Types of errors are not known before they happen, and what the broker holds not before it was asked."""
FRAGILE = "from consumer import job\n@job('fragile')\ndef fragile(payload: int) -> int: return payload\n"


@pytest.mark.any_broker
async def test_the_metrics_of_a_new_daemon_are_clean_and_every_label_set_is_there(
    amqp_url: str, sqlite_url: str
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon:
        await daemon.ready()
        status, text = await daemon.get("/metrics")
    assert status == 200
    assert complaints(text) == ""
    families = {family.name: family for family in text_string_to_metric_families(text)}
    letters = {(s.labels["kind"], s.labels["code"]): s.value for s in families["consumer_dead_letters"].samples}
    settled = {(s.labels["kind"], s.labels["disposition"]): s.value for s in families["consumer_jobs_settled"].samples}
    for kind in KINDS:
        assert {code for its_kind, code in letters if its_kind == kind} == set(Code)
        assert len([pair for pair in settled if pair[0] == kind]) == 6
    assert set(letters.values()) | set(settled.values()) == {0}
    empty = {name for name, family in families.items() if name.startswith("consumer_") and not family.samples}
    assert empty <= NOT_KNOWN_YET
    labels = {name for family in families.values() for sample in family.samples for name in sample.labels}
    assert labels.isdisjoint({"job", "instance", "namespace", "pod", "container", "service", "endpoint", "key"})


def complaints(metrics: str) -> str:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=metrics, capture_output=True, text=True, check=False
    )
    return checked.stdout + checked.stderr


@pytest.mark.any_broker
async def test_a_daemon_is_ready_from_when_it_consumes_until_it_drains(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:

        async def status_is(wanted: int) -> None:
            async def so() -> bool:
                return (await daemon.get("/readyz"))[0] == wanted

            await eventually(so, f"/readyz says {wanted}")
            assert (await daemon.get("/livez"))[0] == 200

        await status_is(503)
        await status_is(200)
        assert await producer.consumers("jobs.default") == 1
        await producer.submit("wait_for_gate", marks.payload, "one")
        await marks.of("one")
        daemon.terminate()
        await status_is(503)
        marks.open_gate()
        assert await daemon.wait() == 0


async def test_a_daemon_whose_queue_is_deleted_is_not_ready_until_it_has_declared_it_again(
    amqp_url: str, sqlite_url: str
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        await producer.channel.queue_delete("jobs.default")
        (phase,) = await daemon.logged(lambda line: line.get("phase") == "paused")
        assert "jobs.default" in phase["why"]
        await daemon.logged(lambda line: line.get("phase") == "consuming", count=2)
        await daemon.ready()
        assert await daemon.metric("consumer_broker_sessions_total", reason="cancelled") == 1
        await producer.submit("echo", 1, "after")
        await all_are("succeeded", sqlite_url, 1)


async def test_a_delay_ladder_that_is_deleted_is_declared_again_and_costs_no_attempt(
    amqp_url: str, sqlite_url: str
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for level in range(LEVELS):
            await producer.channel.exchange_delete(f"jobs.delay.v1.{level}")
        await producer.submit("retry", 0.3, "one")
        (line,) = await daemon.logged(lambda line: line.get("disposition") == "retry")
        assert line["attempt"] == 1
        assert await producer.depth("jobs.default.dead") == 0


@pytest.mark.any_broker
async def test_a_daemon_whose_children_can_t_be_started_is_not_ready_until_they_can(
    amqp_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    module = tmp_path / "fragile.py"
    module.write_text(FRAGILE)
    chosen = settings(amqp_url, sqlite_url, JOBS__MODULES="fragile", JOBS__PATH=str(tmp_path))
    async with Daemon(chosen) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        module.write_text("import nothing_like_that\n")
        for pid in daemon.children:
            os.kill(pid, signal.SIGKILL)

        async def unready() -> bool:
            return (await daemon.get("/readyz"))[0] == 503

        await eventually(unready, "the daemon isn't ready any more")
        assert "children" in (await daemon.get("/readyz"))[1]
        assert (await daemon.get("/livez"))[0] == 200
        await producer.submit("fragile", 1, "one")
        module.write_text(FRAGILE)
        await daemon.ready()
        assert (await all_are("succeeded", sqlite_url, 1))["one"]["attempt"] == 1


@pytest.mark.any_broker
async def test_jobs_that_kill_their_children_keep_nobody_else_waiting_for_long(amqp_url: str, sqlite_url: str) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        for number in range(4):
            await producer.submit("dies", None, f"dies-{number}")
        await producer.submit("echo", 1, "good")
        await daemon.logged(lambda line: line.get("code") == "worker_crashed", count=4)
        (line,) = await daemon.logged(lambda line: line.get("key") == "good")
        assert (line["disposition"], line["attempt"]) == ("complete", 1)
        assert await daemon.metric("consumer_child_exits_total", reason="crash") == 4
        assert await daemon.metric("consumer_dead_letters_total", code="worker_crashed") == 4
