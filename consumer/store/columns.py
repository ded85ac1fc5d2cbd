"""A row as columns and back: the one place that knows both, for every database."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from consumer.core.job import Fault
from consumer.core.row import Failure, Row, Status
from schemas.codes import Code

COLUMNS = (
    "kind",
    "key",
    "status",
    "attempt",
    "generation",
    "crashes",
    "token",
    "owner",
    "lease_until",
    "fingerprint",
    "payload",
    "result",
    "error_code",
    "error_type",
    "error_message",
    "error_traceback",
    "history",
    "submitted_at",
    "first_seen_at",
    "started_at",
    "finished_at",
    "due_at",
    "deadline",
    "swept_at",
    "cpu_seconds",
    "peak_memory",
    "progress",
    "progress_note",
)


def to_columns(row: Row) -> tuple[Any, ...]:
    """Values in the order of COLUMNS. A result is JSON text, so it is stored as text."""
    fault = row.fault
    return (
        row.kind,
        row.key,
        row.status.value,
        row.attempt,
        row.generation,
        row.crashes,
        row.token,
        row.owner,
        row.lease_until,
        row.fingerprint,
        row.payload,
        None if row.result is None else row.result.decode(),
        fault and fault.code.value,
        fault and fault.error_type,
        fault and fault.message,
        fault and fault.traceback,
        _history_text(row.history),
        row.submitted_at,
        row.first_seen_at,
        row.started_at,
        row.finished_at,
        row.due_at,
        row.deadline,
        row.swept_at,
        row.cpu_seconds,
        row.peak_memory,
        row.progress,
        row.progress_note,
    )


def to_row(record: Mapping[str, Any]) -> Row:
    return Row(
        kind=record["kind"],
        key=record["key"],
        status=Status(record["status"]),
        attempt=record["attempt"],
        generation=record["generation"],
        crashes=record["crashes"],
        token=record["token"],
        owner=record["owner"],
        lease_until=record["lease_until"],
        fingerprint=record["fingerprint"],
        payload=record["payload"],
        result=None if record["result"] is None else record["result"].encode(),
        fault=_fault(record),
        history=_history(record["history"]),
        submitted_at=record["submitted_at"],
        first_seen_at=record["first_seen_at"],
        started_at=record["started_at"],
        finished_at=record["finished_at"],
        due_at=record["due_at"],
        deadline=record["deadline"],
        swept_at=record["swept_at"],
        cpu_seconds=record["cpu_seconds"],
        peak_memory=record["peak_memory"],
        progress=record["progress"],
        progress_note=record["progress_note"],
    )


def _fault(record: Mapping[str, Any]) -> Fault | None:
    if record["error_code"] is None:
        return None
    return Fault(Code(record["error_code"]), record["error_type"], record["error_message"], record["error_traceback"])


def _history_text(history: Iterable[Failure]) -> str:
    return json.dumps([asdict(failure) for failure in history]) if history else "[]"


def _history(text: str) -> tuple[Failure, ...]:
    return () if text == "[]" else tuple(Failure(**values) for values in json.loads(text))
