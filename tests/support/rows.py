"""The store as its database shows it, read past the daemon's own code."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.waiting import eventually

Row = dict[str, Any]
COLUMNS = "kind, key, status, attempt, generation, crashes, owner, error_code, due_at, started_at, finished_at"


async def rows(url: str) -> dict[str, Row]:
    """Every job of a store, by key. `result` is JSON text."""
    found = await _query(url, f"SELECT {COLUMNS}, CAST(result AS text) AS result FROM consumer_jobs")
    return {row["key"]: row for row in found}


async def all_are(status: str, url: str, count: int, within: float = 30) -> dict[str, Row]:
    """Wait until the store holds `count` jobs and each of them has that status."""

    async def so() -> bool:
        counts = await _query(url, "SELECT status, count(*) AS count FROM consumer_jobs GROUP BY status")
        return counts == [{"status": status, "count": count}]

    await eventually(so, f"{count} jobs are {status}", within)
    return await rows(url)


async def _query(url: str, query: str) -> list[Row]:
    return _of_sqlite(url, query) if url.startswith("sqlite:") else await _of_postgres(url, query)


def _of_sqlite(url: str, query: str) -> list[Row]:
    path = Path(url.removeprefix("sqlite:///"))
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query)]


async def _of_postgres(url: str, query: str) -> list[Row]:
    connection = await asyncpg.connect(url)
    try:
        return [dict(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()
