"""The index of dead letters in SQLite, on the thread and the connection of its store."""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from consumer.core.letters import Letter, State
from consumer.core.ports import Clock
from consumer.store import letters_sql as sql
from consumer.store.letters_looks import Looks

T = TypeVar("T")
QUERIES = sql.Dialect("?", "IN (SELECT value FROM json_each({}))")

BURY = (
    f"INSERT INTO consumer_dead_letters ({', '.join(sql.TYPES)}) "  # noqa: S608 - constants only
    f"VALUES ({', '.join('?' * len(sql.TYPES))}) {sql.NEWEST_WORD}"
)
MARK = """
UPDATE consumer_dead_letters SET state = ?, state_at = max(state_at, ?)
WHERE id IN (SELECT value FROM json_each(?)) RETURNING id
"""
PRUNE = f"""
DELETE FROM consumer_dead_letters WHERE rowid IN (
    SELECT rowid FROM consumer_dead_letters WHERE {sql.PRUNED} ? ORDER BY state_at LIMIT ?
)
"""  # noqa: S608 - constants only


class InThread(Protocol):
    async def __call__(self, work: Callable[[], T]) -> T: ...


class SqliteLetters(Looks):
    """`read` and `write` run work on the store's thread, the latter in a transaction."""

    def __init__(self, connection: sqlite3.Connection, read: InThread, write: InThread, clock: Clock) -> None:
        super().__init__(QUERIES)
        self._connection = connection
        self._read = read
        self._write = write
        self._clock = clock

    async def bury(self, letters: Sequence[Letter]) -> None:
        await self._write(lambda: self._connection.executemany(BURY, [sql.to_columns(letter) for letter in letters]))

    async def mark(self, ids: Collection[str], state: State, at: int) -> frozenset[str]:
        parameters = (state.value, at, json.dumps(list(ids)))
        known = await self._write(lambda: self._connection.execute(MARK, parameters).fetchall())
        return frozenset(record["id"] for record in known)

    async def prune(self, age: int, limit: int) -> int:
        return await self._write(lambda: self._connection.execute(PRUNE, (self._clock() - age, limit)).rowcount)

    async def _ask(self, query: sql.Query) -> list[Any]:
        parameters = [json.dumps(value) if isinstance(value, list) else value for value in query.parameters]
        return await self._read(lambda: self._connection.execute(query.text, parameters).fetchall())
