"""Dead letters as people and programs see them. All of it came from anybody, so all of it is made printable."""

import json
from collections.abc import Sequence
from typing import Any
from unicodedata import combining, east_asian_width

import typer

from consumer.cli.output import printable
from consumer.core.exact import headers_text, properties_text, tagged_bytes
from consumer.core.letter_index import Group
from consumer.core.letters import Entry, Letter
from consumer.status import time_of
from schemas import headers

ENTRIES = {
    "died_at": "DIED",
    "code": "CODE",
    "kind": "KIND",
    "key": "KEY",
    "attempts": "TRIES",
    "redriven": "REDRIVEN",
    "error_type": "ERROR",
    "error_message": "MESSAGE",
    "id": "ID",
}
GROUPS = {
    "count": "COUNT",
    "group": "GROUP",
    "code": "CODE",
    "error_type": "ERROR",
    "first_died_at": "FIRST",
    "last_died_at": "LAST",
    "example": "EXAMPLE",
    "error_message": "MESSAGE",
}
"""The facts that a table has, with their titles."""
ERROR_WIDTH, NAME_WIDTH = 60, 40
APART = (headers.ERROR_TYPE, headers.ERROR_MESSAGE, headers.ERROR_TRACEBACK, headers.HISTORY)
"""Headers that are shown as facts of their own."""


def entry_facts(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "state": str(entry.state),
        "died_at": time_of(entry.dead_at),
        "code": entry.code or None,
        "kind": entry.kind,
        "key": entry.key,
        "error_type": entry.error_type or None,
        "error_message": entry.error_message or None,
        "group": entry.group,
        "attempts": entry.attempts,
        "redriven": entry.generation,
        "first_failed_at": time_of(entry.first_failed_at),
        "last_failed_at": time_of(entry.last_failed_at),
        "size_bytes": entry.size,
    }


def group_facts(group: Group) -> dict[str, Any]:
    return {
        "group": group.example.group,
        "count": group.count,
        "code": group.example.code or None,
        "error_type": group.example.error_type or None,
        "first_died_at": time_of(group.first_at),
        "last_died_at": time_of(group.last_at),
        "example": group.example.id,
        "error_message": group.example.error_message or None,
    }


def letter_facts(letter: Letter, *, payload: bool) -> dict[str, Any]:
    table = json.loads(headers_text(letter.message))
    facts = entry_facts(letter) | {
        "state_at": time_of(letter.state_at),
        "origin": letter.message.headers.get(headers.ORIGIN),
        "history": _parsed(letter.message.headers.get(headers.HISTORY)),
        "properties": json.loads(properties_text(letter.message)),
        "headers": {name: value for name, value in table.items() if name not in APART},
        "traceback": letter.error_traceback or None,
    }
    if payload:
        facts["payload"] = _text(letter.message.body)
    return facts


def table(rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> None:
    """One line a row, under the titles that `columns` gives to facts."""
    cells = [[*columns.values()], *([_cell(name, row[name]) for name in columns] for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        filled = (cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(filled).rstrip())


def _width(text: str) -> int:
    """Columns of a terminal: wide characters take two, and accents none of their own."""
    return sum(0 if combining(char) else 1 + (east_asian_width(char) in "WF") for char in text)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name.endswith("_at"):
        return f"{value[:19]}Z"
    text = printable(" ".join(str(value).split()))
    limit = ERROR_WIDTH if name.startswith("error_") else NAME_WIDTH
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _parsed(history: Any) -> Any:
    try:
        return [_attempt(said) for said in json.loads(history)]
    except (TypeError, ValueError, RecursionError):
        return None


def _attempt(said: Any) -> Any:
    """With its time as people read it, where it is what a daemon wrote."""
    try:
        return said | {"at": time_of(said["at"])}
    except (TypeError, ValueError, LookupError, OverflowError):
        return said


def _text(body: bytes) -> Any:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return tagged_bytes(body)
