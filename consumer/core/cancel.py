"""What cancelling does to the row of a job: one pure function for every store, as `core.claim.decide` is for claims."""

from dataclasses import replace
from datetime import UTC, datetime

from consumer.core.job import Fault
from consumer.core.row import Row, Status
from schemas.codes import Code

BY_LIMIT = 100
"""Characters that are kept of who it was."""


def decide(row: Row | None, kind: str, key: str, by: str, now: int) -> Row:
    """Return the row as it is afterwards: the one that was there where the job has succeeded, or was cancelled before.

    A job that was never seen gets a tombstone, so that its message finds it; so does that of a delayed one, which comes
    when it is due. A running one is moved on to the next token, so that its result finds nothing. One that failed may
    be on its way again, redriven or corrected.
    """
    if row is None:
        row = Row(kind, key, Status.PENDING, first_seen_at=now)
    if row.status in (Status.SUCCEEDED, Status.CANCELLED):
        return row
    return replace(
        row,
        status=Status.CANCELLED,
        token=row.token + 1,
        lease_until=None,
        finished_at=now,
        fault=Fault(Code.CANCELLED, "Cancelled", f"cancelled by {_shown(by)} at {_time(now)}"),
    )


def _shown(by: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in by[:BY_LIMIT])


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")
