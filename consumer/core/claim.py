"""Whether a delivery may run: the claim table of the design, as one pure function.

Every store asks this function, inside its own transaction, so that the three of them can't disagree.
A delivery's place in the life of its job is the pair (generation, attempt): a redrive starts a new
generation, a retry a new attempt.
"""

from dataclasses import dataclass, replace

from consumer.core.row import HISTORY_LIMIT, Failure, Row, Status

QUARANTINE_AFTER = 2
"""Owners that died under one attempt, after which the job runs alone."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """`attempt` and `generation` come from headers, clamped. `lease` is in milliseconds.

    A process asks for one delivery of a key at a time, and only while it doesn't run that key.
    """

    kind: str
    key: str
    fingerprint: bytes
    owner: str
    lease: int
    crash_limit: int
    attempt: int = 1
    generation: int = 0
    submitted_at: int | None = None
    deadline: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Execute it, and carry `token` in every later write. `alone`: it is a suspect, run nothing beside it."""

    token: int
    attempt: int
    generation: int = 0
    crashes: int = 0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Spent:
    """Too many owners died under it: dead-letter it as worker_crashed, under this token."""

    token: int
    attempt: int
    crashes: int


@dataclass(frozen=True, slots=True)
class Done:
    """Its effect is there, or a later copy answers for it: ack. `reason` is a status or 'stale'."""

    reason: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key belongs to another payload: dead-letter the message, leave the row alone."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Another owner may be running it: come back in `milliseconds`."""

    milliseconds: int


Claim = Run | Spent | Done | Conflict | Wait


def decide(row: Row | None, request: ClaimRequest, now: int) -> tuple[Claim, Row | None]:
    """Return the answer, and the row to write where the answer changes it (else None)."""
    if row is None:
        return _run(_fresh(request, now), request, now)
    if row.status is Status.CANCELLED:
        return Done(row.status), None
    if row.status is Status.PENDING:
        return _pending(row, request, now)
    if row.fingerprint != request.fingerprint:
        return _other_payload(row, request, now)
    match row.status:
        case Status.SUCCEEDED:
            return Done(row.status), None
        case Status.FAILED:
            return _failed(row, request, now)
        case Status.RETRYING:
            return _retrying(row, request, now)
        case _:
            return _processing(row, request, now)


def _fresh(request: ClaimRequest, now: int) -> Row:
    return Row(
        kind=request.kind,
        key=request.key,
        status=Status.PENDING,
        attempt=request.attempt,
        generation=request.generation,
        fingerprint=request.fingerprint,
        submitted_at=request.submitted_at,
        first_seen_at=now,
        deadline=request.deadline,
    )


def _pending(row: Row, request: ClaimRequest, now: int) -> tuple[Claim, Row | None]:
    """Submitted and never claimed, or given back: any copy runs it, at the later place of the two."""
    if _is_superseded(request, row):
        return Done("stale"), None
    resumed = replace(row, fingerprint=request.fingerprint)
    if _is_ahead(request, row):
        resumed = replace(resumed, generation=request.generation, attempt=request.attempt, crashes=0)
    return _run_or_spent(resumed, request, now)


def _other_payload(row: Row, request: ClaimRequest, now: int) -> tuple[Claim, Row | None]:
    """A failed job may be corrected by a new payload under its key; every other state keeps its payload."""
    if row.status is not Status.FAILED:
        return Conflict(), None
    if _is_superseded(request, row):
        return Done("stale"), None
    return _next_generation(replace(row, fingerprint=request.fingerprint), request, now)


def _failed(row: Row, request: ClaimRequest, now: int) -> tuple[Claim, Row | None]:
    if request.generation <= row.generation:
        return Done(row.status), None
    return _next_generation(row, request, now)


def _retrying(row: Row, request: ClaimRequest, now: int) -> tuple[Claim, Row | None]:
    if request.generation > row.generation:
        return _next_generation(row, request, now)
    if not _is_ahead(request, row):
        return Done("stale"), None
    return _run(replace(row, attempt=row.attempt + 1, crashes=0), request, now)


def _processing(row: Row, request: ClaimRequest, now: int) -> tuple[Claim, Row | None]:
    ours = row.owner == request.owner
    ahead = _is_ahead(request, row)
    lease_left = (row.lease_until or 0) - now
    if not ours and lease_left > 0:
        return Wait(lease_left), None
    if request.generation > row.generation:
        return _next_generation(row, request, now)
    if ahead:
        return _run(replace(row, attempt=row.attempt + 1, crashes=0), request, now)
    if request.generation == row.generation and request.attempt < row.attempt:
        return Done("stale"), None
    # An older generation isn't stale here: a correction's own message doesn't know that it began a new one.
    return _take_over(row, request, now)


def _take_over(row: Row, request: ClaimRequest, now: int) -> tuple[Claim, Row | None]:
    """Its run is over without a word: our own lost write, which charges nobody, or an owner that died."""
    crashes = row.crashes if row.owner == request.owner else row.crashes + 1
    return _run_or_spent(replace(row, crashes=crashes), request, now)


def _run_or_spent(row: Row, request: ClaimRequest, now: int) -> tuple[Run | Spent, Row]:
    """Spent it also stays when it was given back because its dead letter could not be published."""
    answer, claimed = _run(row, request, now)
    if row.crashes >= request.crash_limit:
        return Spent(claimed.token, claimed.attempt, claimed.crashes), claimed
    return answer, claimed


def _is_superseded(request: ClaimRequest, row: Row) -> bool:
    """An old copy of a payload that failed and was corrected since."""
    if request.fingerprint == row.fingerprint or request.generation > row.generation:
        return False
    return any(past.fingerprint == request.fingerprint.hex() for past in row.history)


def _is_ahead(request: ClaimRequest, row: Row) -> bool:
    return (request.generation, request.attempt) > (row.generation, row.attempt)


def _next_generation(row: Row, request: ClaimRequest, now: int) -> tuple[Claim, Row]:
    renewed = replace(
        row,
        # At least the delivery's own, so that its redelivery is recognised as the same one.
        generation=max(row.generation + 1, request.generation),
        attempt=1,
        crashes=0,
        fault=None,
        deadline=request.deadline,
    )
    return _run(renewed, request, now)


def _run(row: Row, request: ClaimRequest, now: int) -> tuple[Run, Row]:
    claimed = replace(
        row,
        status=Status.PROCESSING,
        token=row.token + 1,
        owner=request.owner,
        lease_until=now + request.lease,
        started_at=now,
        finished_at=None,
        due_at=None,
        swept_at=None,
        progress=None,
        progress_note="",
    )
    alone = claimed.crashes >= QUARANTINE_AFTER
    return Run(claimed.token, claimed.attempt, claimed.generation, claimed.crashes, alone), claimed


def remember(row: Row, failure: Failure) -> tuple[Failure, ...]:
    """The row's history with one more failure, the oldest forgotten beyond the limit."""
    return (*row.history, failure)[-HISTORY_LIMIT:]
