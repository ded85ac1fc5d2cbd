"""What is said about a settled delivery: one log line that restores its timeline, and the metrics of the flow."""

import re
from typing import Any

import structlog

from consumer.core.disposition import Complete, DeadLetter, Disposition, Retry, Settlement
from consumer.core.outcome import Failed, Interrupted
from consumer.core.ports import Clock, Delivery
from consumer.core.verdict import Verdict
from consumer.metrics import UNKNOWN_KIND, Metrics

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class SettlementJournal:
    def __init__(self, metrics: Metrics, kinds: frozenset[str], clock: Clock) -> None:
        self._metrics = metrics
        self._kinds = kinds
        self._clock = clock
        self._log = structlog.get_logger("consumer.journal")

    def received(self, delivery: Delivery) -> None:
        metrics, queue = self._metrics, self._metrics.queue
        metrics.received.labels(queue, "true" if delivery.redelivered else "false").inc()
        published = delivery.message.timestamp_ms
        if published is not None and not delivery.redelivered:
            metrics.last_received.labels(queue).set(published / 1000)

    def settled(self, delivery: Delivery, verdict: Verdict, settlement: Settlement, on_time: bool) -> None:
        now = self._clock()
        name = _snake(type(verdict.disposition))
        if settlement is Settlement.RELEASE:
            name = "release"
        self._count(delivery, verdict, settlement, name, now, on_time)
        line = self._line(delivery, verdict, name, now)
        if not on_time:
            line["stale"] = True
        if name == "dead_letter":
            self._log.warning("job settled", **line)
        else:
            self._log.info("job settled", **line)

    def _line(self, delivery: Delivery, verdict: Verdict, name: str, now: int) -> dict[str, Any]:
        line: dict[str, Any] = {
            "kind": verdict.kind,
            "key": verdict.key,
            "attempt": verdict.attempt,
            "disposition": name,
            "in_hand_ms": now - delivery.received_at,
        }
        if verdict.job is not None and verdict.job.traceparent:
            line["traceparent"] = verdict.job.traceparent
        outcome = verdict.outcome
        if outcome is not None:
            line["outcome"] = _snake(type(outcome))
        if outcome is not None and not isinstance(outcome, Interrupted) and outcome.usage.started_at:
            usage = outcome.usage
            line["queue_wait_ms"] = max(usage.started_at - _queued_at(delivery, verdict), 0)
            line["run_ms"] = usage.finished_at - usage.started_at
            line["cpu_ms"] = round(usage.cpu_seconds * 1000, 1)
            line["commit_ms"] = max(now - usage.finished_at, 0)
        line.update(_why(verdict.disposition))
        return line

    def _count(
        self,
        delivery: Delivery,
        verdict: Verdict,
        settlement: Settlement,
        name: str,
        now: int,
        on_time: bool,
    ) -> None:
        metrics, queue = self._metrics, self._metrics.queue
        kind = verdict.kind if verdict.kind in self._kinds else UNKNOWN_KIND
        metrics.settled.labels(queue, kind, name).inc()
        metrics.settlements.labels(queue, settlement.value, "ok" if on_time else "stale").inc()
        metrics.last_settled.labels(queue).set(now / 1000)
        self._count_run(delivery, verdict, kind)
        if settlement is Settlement.RELEASE:
            return
        match verdict.disposition:
            case Retry(reason=reason):
                metrics.retries.labels(queue, kind, reason).inc()
            case DeadLetter(fault):
                metrics.dead_letters.labels(queue, kind, fault.code).inc()
                self._count_final(verdict, now)
            case Complete():
                self._count_final(verdict, now)

    def _count_run(self, delivery: Delivery, verdict: Verdict, kind: str) -> None:
        metrics, queue, outcome = self._metrics, self._metrics.queue, verdict.outcome
        if outcome is None or isinstance(outcome, Interrupted):
            return
        usage = outcome.usage
        metrics.job_seconds.labels(queue, kind).observe((usage.finished_at - usage.started_at) / 1000)
        metrics.job_cpu_seconds.labels(queue, kind).observe(usage.cpu_seconds)
        waited = max(usage.started_at - _queued_at(delivery, verdict), 0)
        metrics.queue_wait.labels(queue).observe(waited / 1000)
        if verdict.job is not None and verdict.job.due is not None:
            metrics.lateness.labels(queue).observe(max(delivery.received_at - verdict.job.due, 0) / 1000)
        if isinstance(outcome, Failed):
            error_type = metrics.error_type(outcome.fault.error_type)
            metrics.exceptions.labels(queue, kind, error_type).inc()

    def _count_final(self, verdict: Verdict, now: int) -> None:
        metrics, queue = self._metrics, self._metrics.queue
        metrics.attempts.labels(queue).observe(verdict.attempt)
        if verdict.job is not None and verdict.job.submitted_at is not None:
            metrics.end_to_end.labels(queue).observe(max(now - verdict.job.submitted_at, 0) / 1000)


def _queued_at(delivery: Delivery, verdict: Verdict) -> int:
    """Since when it could have run: a retry since it was due, else since it was published, as far as we know."""
    if verdict.job is not None and verdict.job.due is not None:
        return verdict.job.due
    submitted = verdict.job.submitted_at if verdict.job is not None else None
    return submitted or delivery.message.timestamp_ms or delivery.received_at


def _why(disposition: Disposition) -> dict[str, Any]:
    match disposition:
        case Complete():
            return {}
        case Retry(due=due, fault=fault):
            return {"code": fault.code, "error": f"{fault.error_type}: {fault.message}", "due_ms": due}
        case DeadLetter(fault):
            return {"code": fault.code, "error": f"{fault.error_type}: {fault.message}"}
        case _:
            return {"reason": disposition.reason}


def _snake(of: type) -> str:
    return _WORDS.sub("_", of.__name__).lower()
