"""Jobs that are cancelled in a daemon in memory: while they run, before, and afterwards."""

import asyncio
from collections.abc import Callable

import pytest

from consumer import JobContext, job
from consumer.testing import MemoryDaemon
from consumer.testing.fixtures import memory_daemon

assert memory_daemon  # a fixture


@pytest.fixture
def daemon(memory_daemon: Callable[..., MemoryDaemon]) -> MemoryDaemon:
    """Of handlers that cancel their own job while it runs, as a person might just then."""

    def cancel(context: JobContext) -> bool:
        assert not context.cancelled
        assert made.cancel(context.kind, context.key)
        return context.cancelled

    @job("cancelled")
    def cancelled(payload: int, context: JobContext) -> bool:
        context.send("fails_at_first", 1)
        return cancel(context)

    @job("cancelled_async")
    async def cancelled_async(payload: int, context: JobContext) -> None:
        assert cancel(context)
        try:
            await asyncio.Event().wait()
        finally:
            context.progress(1.0, "cleaned up")

    @job("fails_at_first")
    def fails_at_first(payload: int, context: JobContext) -> None:
        if context.attempt == 1:
            raise ConnectionError

    made = memory_daemon(cancelled, cancelled_async, fails_at_first)
    return made


@pytest.mark.parametrize(("kind", "progress"), [("cancelled", ()), ("cancelled_async", ((1.0, "cleaned up"),))])
def test_a_job_that_is_cancelled_while_it_runs_hears_of_it_and_what_it_returns_does_not_count(
    daemon: MemoryDaemon, kind: str, progress: object
) -> None:
    key = daemon.publish(kind, 1)
    daemon.run_until_idle()
    assert [(run.status, run.progress) for run in daemon.runs()] == [("cancelled", progress)]
    status = daemon.status(kind, key)
    assert (status["status"], "result" in status) == ("cancelled", False)


def test_a_job_that_is_cancelled_before_it_comes_or_runs_or_while_it_waits_for_a_retry_runs_no_more(
    daemon: MemoryDaemon,
) -> None:
    daemon.publish("fails_at_first", 1, key="retried")
    daemon.advance(0)
    daemon.publish("fails_at_first", 1, key="queued")
    assert all(daemon.cancel("fails_at_first", key) for key in ("retried", "queued", "unseen"))
    daemon.publish("fails_at_first", 1, key="unseen")
    daemon.run_until_idle()
    assert [run.key for run in daemon.runs()] == ["retried"]
    statuses = [daemon.status("fails_at_first", key)["status"] for key in ("retried", "queued", "unseen")]
    assert statuses == ["cancelled"] * 3


def test_a_job_that_has_succeeded_can_not_be_cancelled_any_more(daemon: MemoryDaemon) -> None:
    key = daemon.publish("fails_at_first", 1)
    daemon.run_until_idle()
    assert not daemon.cancel("fails_at_first", key)
    assert daemon.status("fails_at_first", key)["status"] == "succeeded"
