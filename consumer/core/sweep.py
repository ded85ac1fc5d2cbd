"""Which rows have waited too long for a delivery, and the message that brings one of them back.

The SQL databases say the first two functions in their own words (`store.conditions`); the contract tests compare.
"""

from consumer.core.content import JSON
from consumer.core.job import Message
from consumer.core.row import Row, Status
from schemas import headers

LIVE = (Status.PENDING, Status.PROCESSING, Status.RETRYING)
FINISHED = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
PROPERTY_LIMIT = 255
"""Bytes of a property in AMQP. A longer key goes into a header."""


def is_stuck(row: Row, grace: int, now: int) -> bool:
    """Whether nothing has come for it since `grace` ms: no renewal of its lease, no retry that is due, no claim."""
    return row.status in LIVE and now - _waiting_since(row) > grace


def is_overdue(row: Row, grace: int, now: int) -> bool:
    """Whether a stuck row is to be published (again): each time it has to wait twice as long.

    Its message may only stand in a long queue, and copies must not make that queue much longer.
    """
    if not is_stuck(row, grace, now):
        return False
    return row.swept_at is None or now - row.swept_at >= row.swept_at - _waiting_since(row)


def is_forgettable(row: Row, age: int, now: int) -> bool:
    """Whether it is done since `age` ms; and where it was cancelled before it was due, whether it would be."""
    since = max(row.finished_at or now, row.due_at or 0)
    return row.status in FINISHED and now - since > age


def _waiting_since(row: Row) -> int:
    if row.status is Status.PROCESSING:
        return row.lease_until or 0
    return (row.due_at if row.due_at is not None else row.first_seen_at) or 0


def request(row: Row) -> Message:
    """The message of a job that was submitted through us, for the place in its life where its row is."""
    attempt = row.attempt + 1 if row.status is Status.RETRYING else row.attempt
    fits = len(row.key.encode()) <= PROPERTY_LIMIT
    account = {
        headers.SUBMITTED_AT: row.submitted_at,
        headers.IDEMPOTENCY_KEY: None if fits else row.key,
        headers.NOT_BEFORE: row.due_at if row.status is Status.PENDING else None,
        headers.DEADLINE: row.deadline,
        headers.ATTEMPT: attempt if attempt > 1 else None,
        headers.GENERATION: row.generation or None,
    }
    return Message(
        row.payload or b"",
        {name: value for name, value in account.items() if value is not None},
        content_type=JSON,
        type=row.kind,
        message_id=row.key if fits else None,
        timestamp_ms=row.submitted_at,
    )
