"""A row as columns and back: the one place that knows both, for every database."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from consumer.core.job import Fault
from consumer.core.row import Failure, Row, Status
from schemas.codes import Code

TYPES = {
    "kind": "text",
    "key": "text",
    "status": "text",
    "attempt": "int",
    "generation": "int",
    "crashes": "int",
    "token": "bigint",
    "owner": "text",
    "lease_until": "bigint",
    "fingerprint": "bytea",
    "payload": "bytea",
    "result": "json",
    "error_code": "text",
    "error_type": "text",
    "error_message": "text",
    "error_traceback": "text",
    "history": "json",
    "submitted_at": "bigint",
    "first_seen_at": "bigint",
    "started_at": "bigint",
    "finished_at": "bigint",
    "due_at": "bigint",
    "deadline": "bigint",
    "swept_at": "bigint",
    "cpu_seconds": "float8",
    "peak_memory": "bigint",
    "progress": "float8",
    "progress_note": "text",
}
"""Every column, with its type in PostgreSQL."""
COLUMNS = tuple(TYPES)
_TRANSLATED = {"status", "result", "error_code", "error_type", "error_message", "error_traceback", "history"}
_AS_THEY_ARE = tuple(name for name in COLUMNS if name not in _TRANSLATED)


def to_columns(row: Row) -> dict[str, Any]:
    """A result is JSON text, so it is stored as text."""
    fault = row.fault
    return {name: getattr(row, name) for name in _AS_THEY_ARE} | {
        "status": row.status.value,
        "result": None if row.result is None else row.result.decode(),
        "error_code": fault and fault.code.value,
        "error_type": fault and fault.error_type,
        "error_message": fault and fault.message,
        "error_traceback": fault and fault.traceback,
        "history": _history_text(row.history),
    }


def to_row(record: Mapping[str, Any]) -> Row:
    return Row(
        **{name: record[name] for name in _AS_THEY_ARE},
        status=Status(record["status"]),
        result=None if record["result"] is None else record["result"].encode(),
        fault=_fault(record),
        history=_history(record["history"]),
    )


def _fault(record: Mapping[str, Any]) -> Fault | None:
    if record["error_code"] is None:
        return None
    return Fault(Code(record["error_code"]), record["error_type"], record["error_message"], record["error_traceback"])


def _history_text(history: Iterable[Failure]) -> str:
    return json.dumps([asdict(failure) for failure in history]) if history else "[]"


def _history(text: str) -> tuple[Failure, ...]:
    return () if text == "[]" else tuple(Failure(**values) for values in json.loads(text))
