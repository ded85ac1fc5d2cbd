"""What is counted and logged about a settled delivery."""

import json
from typing import Any

import pytest
import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from consumer.core.disposition import Complete, DeadLetter, Defer, Release, Retry, Settlement
from consumer.core.job import Fault, Job, Message
from consumer.core.outcome import Failed, Succeeded, Usage
from consumer.core.verdict import Verdict
from consumer.journal import SettlementJournal
from consumer.metrics import Metrics
from consumer.testing.clock import VirtualClock
from schemas.codes import Code
from tests.support.twins import START, TestDelivery

USAGE = Usage(START + 200, START + 1700, 1.25, 10)
SUCCESS = Succeeded(b"1", USAGE)
ODD = Fault(Code.ATTEMPTS_EXHAUSTED, "app.Odd", "no luck")


class Book:
    def __init__(self) -> None:
        structlog.reset_defaults()
        self.registry = CollectorRegistry()
        metrics = Metrics(self.registry, "default")
        metrics.expect(["k"])
        self.time = VirtualClock(START + 2000)
        self.journal = SettlementJournal(metrics, frozenset({"k"}), self.time)

    def settle(self, verdict: Verdict, settlement: Settlement = Settlement.ACK, *, on_time: bool = True) -> Any:
        delivery = TestDelivery(Message(b"secret payload", timestamp_ms=START), received_at=START + 100)
        with capture_logs() as lines:
            self.journal.settled(delivery, verdict, settlement, on_time)
        return lines[0]

    def value(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(f"consumer_{name}", {"queue": "default", **labels})
        assert found is not None, f"{name}{labels} is not exported"
        return found


@pytest.fixture
def book() -> Book:
    return Book()


def job(**fields: Any) -> Job:
    return Job("k", "a", b"1", **fields)


def test_one_line_restores_the_timeline_of_a_job(book: Book) -> None:
    line = book.settle(Verdict(Complete(SUCCESS), "k", "a", job(submitted_at=START), outcome=SUCCESS))
    assert {name: line[name] for name in ("kind", "key", "attempt", "disposition", "outcome")} == {
        "kind": "k",
        "key": "a",
        "attempt": 1,
        "disposition": "complete",
        "outcome": "succeeded",
    }
    assert (line["queue_wait_ms"], line["run_ms"], line["commit_ms"], line["cpu_ms"]) == (200, 1500, 300, 1250)
    assert "secret payload" not in json.dumps(line)


def test_a_success_is_counted_with_its_times(book: Book) -> None:
    book.settle(Verdict(Complete(SUCCESS), "k", "a", job(submitted_at=START), outcome=SUCCESS))
    assert book.value("jobs_settled_total", kind="k", disposition="complete") == 1
    assert book.value("settlements_total", operation="ack", result="ok") == 1
    assert book.value("job_seconds_sum", kind="k") == 1.5
    assert book.value("job_cpu_seconds_sum", kind="k") == 1.25
    assert book.value("queue_wait_seconds_sum") == 0.2
    assert book.value("end_to_end_seconds_sum") == 2.0
    assert book.value("job_attempts_sum") == 1


def test_the_wait_of_a_retry_counts_from_when_it_was_due(book: Book) -> None:
    late = job(submitted_at=START - 60_000, due=START + 50)
    line = book.settle(Verdict(Complete(SUCCESS), "k", "a", late, outcome=SUCCESS))
    assert line["queue_wait_ms"] == 150
    assert book.value("retry_lateness_seconds_sum") == 0.05


def test_a_retry_and_a_dead_letter_say_why(book: Book) -> None:
    outcome = Failed(ODD, USAGE, types=("app.Odd",))
    retry = book.settle(Verdict(Retry(2, START, "attempts_exhausted", ODD), "k", "a", job(), outcome=outcome))
    dead = book.settle(Verdict(DeadLetter(ODD), "k", "a", job(), outcome=outcome))
    assert (retry["code"], retry["error"], retry["log_level"]) == ("attempts_exhausted", "app.Odd: no luck", "info")
    assert (dead["disposition"], dead["log_level"]) == ("dead_letter", "warning")
    assert book.value("job_retries_total", kind="k", reason="attempts_exhausted") == 1
    assert book.value("dead_letters_total", kind="k", code="attempts_exhausted") == 1
    assert book.value("handler_exceptions_total", kind="k", error_type="app.Odd") == 2


def test_what_was_released_is_counted_as_released_whatever_was_decided(book: Book) -> None:
    line = book.settle(Verdict(Retry(2, START, "x", ODD), "k", "a", job()), Settlement.RELEASE)
    assert line["disposition"] == "release"
    assert book.value("jobs_settled_total", kind="k", disposition="release") == 1
    assert book.value("settlements_total", operation="nack", result="ok") == 1


def test_a_settlement_on_a_channel_that_is_gone_is_marked_stale(book: Book) -> None:
    line = book.settle(Verdict(Release("x"), "k", "a", job()), Settlement.RELEASE, on_time=False)
    assert line["stale"] is True
    assert book.value("settlements_total", operation="nack", result="stale") == 1


def test_kinds_from_messages_never_become_labels(book: Book) -> None:
    for number in range(1000):
        book.settle(Verdict(DeadLetter(Fault(Code.UNKNOWN_KIND, "UnknownKind", "")), f"kind-{number}", "a"))
    assert book.value("dead_letters_total", kind="_unknown", code="unknown_kind") == 1000
    kinds = {s.labels.get("kind") for family in book.registry.collect() for s in family.samples}
    assert kinds <= {"k", "_unknown", "", None}


def test_exception_types_beyond_the_fiftieth_share_a_label(book: Book) -> None:
    for number in range(60):
        outcome = Failed(Fault(Code.ATTEMPTS_EXHAUSTED, f"app.Error{number}", ""), USAGE)
        book.settle(Verdict(DeadLetter(ODD), "k", "a", job(), outcome=outcome))
    assert book.value("handler_exceptions_total", kind="k", error_type="_OTHER") == 10


def test_a_job_that_is_put_off_after_a_failure_says_both_why_and_what_it_was(book: Book) -> None:
    outcome = Failed(ODD, USAGE, dependency="partner-api")
    line = book.settle(Verdict(Defer(START + 9, "dependency_down"), "k", "a", job(), outcome=outcome))
    assert (line["reason"], line["due_ms"], line["error"]) == ("dependency_down", START + 9, "app.Odd: no luck")
