"""A row as people and programs see it."""

import json
from datetime import UTC, datetime
from typing import Any

from consumer.core.row import Row, Status


def describe(row: Row) -> dict[str, Any]:
    """Times as ISO 8601 in UTC; what isn't known yet is left out."""
    facts: dict[str, Any] = {
        "kind": row.kind,
        "key": row.key,
        "status": str(row.status),
        "attempt": row.attempt,
        "generation": row.generation or None,
        "crashes": row.crashes or None,
        "submitted_at": time_of(row.submitted_at),
        "first_seen_at": time_of(row.first_seen_at),
        "started_at": time_of(row.started_at),
        "finished_at": time_of(row.finished_at),
        "due_at": time_of(row.due_at),
        "deadline": time_of(row.deadline),
        "progress": _progress(row),
        "owner": row.owner,
        "cpu_seconds": round(row.cpu_seconds, 6) or None,
        "peak_memory_bytes": row.peak_memory or None,
        "error": _error(row),
        "history": [_failure(past) for past in row.history] or None,
        "result": None if row.result is None else json.loads(row.result),
    }
    always = {"result"} if row.result is not None else set()
    return {name: fact for name, fact in facts.items() if fact is not None or name in always}


def _progress(row: Row) -> dict[str, Any] | None:
    """Of a run that is over it says nothing more."""
    if row.status is not Status.PROCESSING or row.progress is None:
        return None
    return {"fraction": round(row.progress, 4), "note": row.progress_note}


def _error(row: Row) -> dict[str, Any] | None:
    if row.fault is None:
        return None
    return {
        "code": str(row.fault.code),
        "type": row.fault.error_type,
        "message": row.fault.message,
        "traceback": row.fault.traceback or None,
    }


def _failure(past: Any) -> dict[str, Any]:
    return {
        "generation": past.generation,
        "attempt": past.attempt,
        "at": time_of(past.at),
        "code": past.code,
        "error": f"{past.error_type}: {past.message}",
        "owner": past.owner,
    }


def time_of(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
