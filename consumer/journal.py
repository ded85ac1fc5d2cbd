"""What is said about a settled delivery: one log line that restores its timeline, and the metrics of the flow."""

import re
from functools import cache
from typing import Any

import structlog

from consumer.core.disposition import Complete, DeadLetter, Defer, Disposition, Retry, Settlement
from consumer.core.job import Fault
from consumer.core.outcome import Crashed, Failed, Interrupted, TimedOut
from consumer.core.ports import Clock, Delivery
from consumer.core.verdict import Verdict
from consumer.metrics import DISPOSITIONS, UNKNOWN_KIND, Metrics

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class _OfKind:
    """The metrics of one kind with their labels bound: looking them up again costs more than counting."""

    def __init__(self, metrics: Metrics, kind: str) -> None:
        labels = (metrics.queue, kind)
        self.settled = {name: metrics.settled.labels(*labels, name) for name in DISPOSITIONS}
        self.job_seconds = metrics.job_seconds.labels(*labels)
        self.job_cpu_seconds = metrics.job_cpu_seconds.labels(*labels)


class _OfQueue:
    """Likewise those of the queue."""

    def __init__(self, metrics: Metrics) -> None:
        queue = metrics.queue
        self.settlements = {
            (settlement, on_time): metrics.settlements.labels(queue, settlement.value, "ok" if on_time else "stale")
            for settlement in Settlement
            for on_time in (True, False)
        }
        self.received = {
            redelivered: metrics.received.labels(queue, str(redelivered).lower()) for redelivered in (True, False)
        }
        self.last_received = metrics.last_received.labels(queue)
        self.last_settled = metrics.last_settled.labels(queue)
        self.queue_wait = metrics.queue_wait.labels(queue)
        self.lateness = metrics.lateness.labels(queue)
        self.attempts = metrics.attempts.labels(queue)
        self.end_to_end = metrics.end_to_end.labels(queue)


class SettlementJournal:
    def __init__(self, metrics: Metrics, kinds: frozenset[str], clock: Clock) -> None:
        self._metrics = metrics
        self._kinds = {kind: _OfKind(metrics, kind) for kind in kinds}
        self._unknown = _OfKind(metrics, UNKNOWN_KIND)
        self._queue = _OfQueue(metrics)
        self._clock = clock
        self._log = structlog.get_logger("consumer.journal")

    def received(self, delivery: Delivery) -> None:
        self._queue.received[delivery.redelivered].inc()
        published = delivery.message.timestamp_ms
        if published is not None and not delivery.redelivered:
            self._queue.last_received.set(published / 1000)

    def settled(self, delivery: Delivery, verdict: Verdict, settlement: Settlement, on_time: bool) -> None:
        now = self._clock()
        name = _snake(type(verdict.disposition).__name__)
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
            line["outcome"] = _snake(type(outcome).__name__)
        if outcome is not None and not isinstance(outcome, Interrupted) and outcome.usage.started_at:
            usage = outcome.usage
            line["queue_wait_ms"] = max(usage.started_at - _queued_at(delivery, verdict), 0)
            line["run_ms"] = usage.finished_at - usage.started_at
            line["cpu_ms"] = round(usage.cpu_seconds * 1000, 1)
            line["commit_ms"] = max(now - usage.finished_at, 0)
        line.update(_why(verdict.disposition))
        if isinstance(verdict.disposition, Defer) and isinstance(outcome, Failed | TimedOut | Crashed):
            line.update(_fault(outcome.fault))  # put off all the same, but people want to know
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
        known = self._kinds.get(verdict.kind or "")
        of_kind, kind = (known, verdict.kind) if known else (self._unknown, UNKNOWN_KIND)
        of_kind.settled[name].inc()
        self._queue.settlements[settlement, on_time].inc()
        self._queue.last_settled.set(now / 1000)
        self._count_run(delivery, verdict, of_kind, kind or UNKNOWN_KIND)
        if settlement is Settlement.RELEASE:
            return
        match verdict.disposition:
            case Complete():
                self._count_final(verdict, now)
            case Retry(reason=reason):
                self._metrics.retries.labels(self._metrics.queue, kind, reason).inc()
            case DeadLetter(fault):
                self._metrics.dead_letters.labels(self._metrics.queue, kind, fault.code).inc()
                self._count_final(verdict, now)

    def _count_run(self, delivery: Delivery, verdict: Verdict, of_kind: _OfKind, kind: str) -> None:
        outcome = verdict.outcome
        if outcome is None or isinstance(outcome, Interrupted):
            return
        usage = outcome.usage
        of_kind.job_seconds.observe((usage.finished_at - usage.started_at) / 1000)
        of_kind.job_cpu_seconds.observe(usage.cpu_seconds)
        self._queue.queue_wait.observe(max(usage.started_at - _queued_at(delivery, verdict), 0) / 1000)
        if verdict.job is not None and verdict.job.due is not None:
            self._queue.lateness.observe(max(delivery.received_at - verdict.job.due, 0) / 1000)
        if isinstance(outcome, Failed):
            error_type = self._metrics.error_types.label(kind, outcome.fault.error_type)
            self._metrics.exceptions.labels(self._metrics.queue, kind, error_type).inc()

    def _count_final(self, verdict: Verdict, now: int) -> None:
        self._queue.attempts.observe(verdict.attempt)
        if verdict.job is not None and verdict.job.submitted_at is not None:
            self._queue.end_to_end.observe(max(now - verdict.job.submitted_at, 0) / 1000)


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
            return _fault(fault) | {"due_ms": due}
        case DeadLetter(fault):
            return _fault(fault)
        case Defer(due=due, reason=reason):
            return {"reason": reason, "due_ms": due}
        case _:
            return {"reason": disposition.reason}


def _fault(fault: Fault) -> dict[str, Any]:
    return {"code": fault.code, "error": f"{fault.error_type}: {fault.message}"}


@cache
def _snake(name: str) -> str:
    return _WORDS.sub("_", name).lower()
