"""The store as its database shows it, read past the daemon's own code."""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.postgres import program
from tests.support.waiting import eventually

Row = dict[str, Any]
COLUMNS = "kind, key, status, attempt, generation, crashes, owner, error_code, result, due_at, started_at, finished_at"


def rows(url: str) -> dict[str, Row]:
    """Every job of a store, by key. `result` is JSON text."""
    found = _of_sqlite(url) if url.startswith("sqlite:") else _of_postgres(url)
    return {row["key"]: row for row in found}


async def all_are(status: str, url: str, count: int, within: float = 30) -> dict[str, Row]:
    """Wait until the store holds `count` jobs and each of them has that status."""

    async def so() -> bool:
        states = [row["status"] for row in rows(url).values()]
        return len(states) == count and set(states) == {status}

    await eventually(so, f"{count} jobs are {status}", within)
    return rows(url)


def _of_sqlite(url: str) -> list[Row]:
    path = Path(url.removeprefix("sqlite:///"))
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"SELECT {COLUMNS} FROM consumer_jobs")]


def _of_postgres(url: str) -> list[Row]:
    query = f"SELECT coalesce(json_agg(j), '[]') FROM (SELECT {COLUMNS} FROM consumer_jobs) j"
    columns = query.replace("result", "result::text")
    command = [program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", columns, url]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: list[Row] = json.loads(done.stdout)
    return found
