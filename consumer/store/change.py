"""What a write does to a row: one pure function for every backend, as `core.claim.decide` is for claims."""

from dataclasses import replace

from consumer.core.claim import remember
from consumer.core.job import Fault
from consumer.core.row import Change, Failure, Row, Status


def apply(row: Row | None, change: Change, now: int) -> tuple[bool, Row | None]:
    """Return whether the row says so afterwards, and the row to write where that takes a write (else None)."""
    if row is None or row.token != change.ref.token:
        return False, None
    if row.status is not Status.PROCESSING:
        return row.status is change.status, None
    if change.status is Status.PENDING:
        return True, replace(row, status=Status.PENDING, owner=None, lease_until=None, started_at=None, due_at=now)
    return True, _end_of_run(row, change, now)


def _end_of_run(row: Row, change: Change, now: int) -> Row:
    ended = replace(
        row,
        status=change.status,
        lease_until=None,
        due_at=change.due_at,
        started_at=row.started_at if change.started_at is None else change.started_at,
        finished_at=now if change.finished_at is None else change.finished_at,
        cpu_seconds=change.cpu_seconds,
        peak_memory=change.peak_memory,
    )
    if change.status is Status.SUCCEEDED:
        return replace(ended, result=change.result, fault=None)
    if change.fault is None:
        return ended
    fault = _storable(change.fault)
    return replace(ended, fault=fault, history=remember(ended, _failure(ended, fault, now)))


def _failure(row: Row, fault: Fault, now: int) -> Failure:
    return Failure(
        generation=row.generation,
        attempt=row.attempt,
        at=now if row.finished_at is None else row.finished_at,
        code=fault.code.value,
        error_type=fault.error_type,
        message=fault.message,
        owner=row.owner or "",
        fingerprint=row.fingerprint.hex(),
    )


def _storable(fault: Fault) -> Fault:
    return Fault(fault.code, _text(fault.error_type), _text(fault.message), _text(fault.traceback))


def _text(value: str) -> str:
    """Databases refuse NUL and lone surrogates, and exceptions hold both (a file's undecodable name): show them."""
    return value.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
