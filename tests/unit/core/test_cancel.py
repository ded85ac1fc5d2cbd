from dataclasses import replace

import pytest

from consumer.core import cancel
from consumer.core.claim import ClaimRequest, Done
from consumer.core.claim import decide as claim
from consumer.core.job import Fault
from consumer.core.row import Ref, Row, Status
from consumer.store.change import apply
from schemas.codes import Code
from tests.contract.stores import failure, release, retry, success

NOW = 1_700_000_000_000
ROW = Row(
    "mail.send", "order-7", Status.PENDING, token=3, attempt=2, fingerprint=b"a payload", payload=b"{}", owner="them"
)


def cancelled(row: Row | None, by: str = "ann@laptop") -> Row:
    return cancel.decide(row, "mail.send", "order-7", by, NOW)


def test_a_job_that_was_never_seen_gets_a_tombstone() -> None:
    row = cancelled(None)
    assert (row.kind, row.key, row.status, row.fingerprint) == ("mail.send", "order-7", Status.CANCELLED, b"")
    assert (row.first_seen_at, row.finished_at) == (NOW, NOW)


@pytest.mark.parametrize(
    "row",
    [
        replace(ROW, due_at=NOW + 9),
        replace(ROW, status=Status.RETRYING, due_at=NOW + 9, fault=Fault(Code.REJECTED, "ValueError", "no")),
        replace(ROW, status=Status.PROCESSING, lease_until=NOW + 9, started_at=NOW - 9),
        replace(ROW, status=Status.FAILED, finished_at=NOW - 9, fault=Fault(Code.REJECTED, "ValueError", "no")),
    ],
    ids=lambda row: row.status,
)
def test_a_job_that_may_run_again_is_cancelled_and_keeps_what_is_known_of_it(row: Row) -> None:
    after = cancelled(row)
    assert (after.status, after.token, after.finished_at) == (Status.CANCELLED, 4, NOW)
    assert after.lease_until is None
    kept = ("due_at", "attempt", "fingerprint", "payload", "owner", "started_at", "history")
    assert all(getattr(after, name) == getattr(row, name) for name in kept)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.CANCELLED])
def test_a_job_that_is_over_stays_as_it_is(status: Status) -> None:
    row = replace(ROW, status=status)
    assert cancelled(row) is row


def test_the_error_says_who_it_was_and_when() -> None:
    fault = cancelled(None).fault
    assert fault == Fault(Code.CANCELLED, "Cancelled", "cancelled by ann@laptop at 2023-11-14T22:13:20+00:00")


def test_a_name_that_databases_or_terminals_refuse_is_shown_without_harm() -> None:
    fault = cancelled(None, "a\x00n\x1b\ud800" + "x" * 500).fault
    assert fault is not None
    assert fault.message == f"cancelled by a?n??{'x' * 95} at 2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize("write", [success, retry, failure, release])
def test_what_a_running_job_brings_later_finds_nothing(write: object) -> None:
    row = cancelled(replace(ROW, status=Status.PROCESSING))
    assert callable(write)
    assert apply(row, write(Ref("mail.send", "order-7", 3)), NOW) == (False, None)


@pytest.mark.parametrize("delivery", [{}, {"fingerprint": b"another"}, {"generation": 3}, {"attempt": 9}])
@pytest.mark.parametrize("row", [None, ROW, replace(ROW, status=Status.FAILED)])
def test_a_cancelled_job_never_runs_whatever_is_delivered(row: Row | None, delivery: dict[str, object]) -> None:
    request = ClaimRequest("mail.send", "order-7", b"a payload", "us", 30_000, 3)
    assert claim(cancelled(row), replace(request, **delivery), NOW) == (Done("cancelled"), None)  # type: ignore[arg-type]
