"""What a write does to a row: one pure function for every backend, as `core.claim.decide` is for claims."""

from dataclasses import replace

from consumer.core.claim import remember
from consumer.core.job import Fault
from consumer.core.outbox import FollowUp, Outgoing
from consumer.core.row import Change, Failure, Row, Status


def apply(row: Row | None, change: Change, now: int) -> tuple[bool, Row | None]:
    """Return whether the row says so afterwards, and the row to write where that takes a write (else None)."""
    if row is None or row.token != change.ref.token:
        return False, None
    if row.status is not Status.PROCESSING:
        return row.status is change.status, None
    if change.status is Status.PENDING:
        due = now if change.due_at is None else change.due_at
        return True, replace(row, status=Status.PENDING, owner=None, lease_until=None, started_at=None, due_at=due)
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


def outgoing(follow_up: FollowUp, change: Change, now: int) -> Outgoing:
    """What the store keeps of a follow-up of this result, before it has given it a number."""
    return Outgoing(
        id=0,
        kind=follow_up.kind,
        key=follow_up.key,
        payload=follow_up.payload,
        queue=follow_up.queue,
        due=now + follow_up.delay if follow_up.delay else None,
        traceparent=change.traceparent,
        deadline=change.deadline,
        submitted_at=now,
    )


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
    return Fault(fault.code, storable(fault.error_type), storable(fault.message), storable(fault.traceback))


def storable(value: str) -> str:
    """Databases refuse NUL and lone surrogates, and exceptions hold both (a file's undecodable name): show them."""
    return value.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
