from dataclasses import replace

import pytest

from consumer.core.decode import DecodeRules, decode
from consumer.core.job import Job
from consumer.core.row import Row, Status
from consumer.core.sweep import is_overdue, is_stuck, request

GRACE = 300
WAITING = {
    "submitted": Row("k", "a", Status.PENDING, first_seen_at=1_000),
    "given back": Row("k", "a", Status.PENDING, first_seen_at=10, due_at=1_000),
    "retrying": Row("k", "a", Status.RETRYING, first_seen_at=10, due_at=1_000),
    "processing": Row("k", "a", Status.PROCESSING, first_seen_at=10, lease_until=1_000),
}


@pytest.mark.parametrize("row", WAITING.values(), ids=WAITING)
def test_a_row_is_stuck_and_overdue_once_it_has_waited_for_longer_than_the_grace(row: Row) -> None:
    assert not is_stuck(row, GRACE, 1_300)
    assert is_stuck(row, GRACE, 1_301)
    assert is_overdue(row, GRACE, 1_301)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED])
def test_a_job_that_is_done_waits_for_nothing(status: Status) -> None:
    assert not is_stuck(Row("k", "a", status, first_seen_at=1, lease_until=1, due_at=1), GRACE, 10_000)


def test_copies_of_a_job_that_waits_for_ten_hours_are_few() -> None:
    """Looked at every minute, with a grace of five: after 5, 10, 20 … minutes."""
    row, published = WAITING["submitted"], []
    for minute in range(600):
        now = 1_000 + minute * 60_000
        if is_overdue(row, 5 * 60_000, now):
            published.append(minute)
            row = replace(row, swept_at=now)
    assert published == [6, 12, 24, 48, 96, 192, 384]


@pytest.mark.parametrize(
    ("row", "attempt"),
    [
        (Row("k", "a", Status.PENDING), 1),
        (Row("k", "a", Status.PENDING, attempt=3, generation=2, deadline=99), 3),
        (Row("k", "a", Status.RETRYING, attempt=3), 4),
        (Row("k", "a", Status.PROCESSING, attempt=3, generation=1), 3),
        (Row("k", "ü" * 200, Status.PROCESSING), 1),
    ],
)
def test_a_request_stands_for_the_place_where_its_row_is(row: Row, attempt: int) -> None:
    job = decode(request(replace(row, payload=b'{"n": 1}', submitted_at=5)), DecodeRules())
    assert isinstance(job, Job)
    assert (job.kind, job.key, job.body, job.submitted_at) == (row.kind, row.key, b'{"n": 1}', 5)
    assert (job.attempt, job.generation, job.deadline, job.due) == (attempt, row.generation, row.deadline, None)


def test_the_first_request_of_a_job_carries_nothing_of_ours_but_its_time() -> None:
    assert request(Row("k", "a", Status.PENDING, payload=b"1", submitted_at=5)).headers == {"submitted-at-ms": 5}


def test_a_request_for_a_job_that_was_put_off_says_until_when_so_that_this_is_not_taken_as_waiting() -> None:
    row = Row("k", "a", Status.PENDING, payload=b"1", submitted_at=5, due_at=3_600_005)
    assert request(row).headers == {"submitted-at-ms": 5, "not-before-ms": 3_600_005}
    assert "not-before-ms" not in request(replace(row, status=Status.RETRYING)).headers
