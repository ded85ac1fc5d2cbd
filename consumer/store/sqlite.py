"""SQLite, the embedded default: one file, one writer, one thread that the event loop never waits in."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from consumer.core.claim import Claim, ClaimRequest, decide
from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.core.ports import Clock
from consumer.core.row import Change, Ref, Row, Status
from consumer.store import conditions
from consumer.store.change import apply
from consumer.store.columns import COLUMNS, to_columns, to_row
from consumer.store.filesystem import MOUNTS, refuse_network
from consumer.store.migration import scripts

BUSY_SECONDS = 5.0
"""How long a transaction waits for another process that writes to the same file."""

FIND = "SELECT * FROM consumer_jobs WHERE kind = ? AND key = ?"
SAVE = (
    f"INSERT OR REPLACE INTO consumer_jobs ({', '.join(COLUMNS)}) "  # noqa: S608 - constants only
    f"VALUES ({', '.join('?' * len(COLUMNS))})"
)
STUCK = f"""
SELECT status, count(*) AS count FROM (
    SELECT status FROM consumer_jobs WHERE {conditions.stuck("?")} LIMIT {conditions.COUNTED}
) GROUP BY status
"""  # noqa: S608 - constants only
OVERDUE = f"""
SELECT * FROM consumer_jobs
WHERE {conditions.overdue("?", "?")} AND kind IN (SELECT value FROM json_each(?))
ORDER BY {conditions.SINCE} LIMIT ?
"""  # noqa: S608 - constants only
SWEPT = "UPDATE consumer_jobs SET swept_at = ? WHERE kind = ? AND key = ? AND token = ?"
PRUNE = f"""
DELETE FROM consumer_jobs WHERE rowid IN (
    SELECT rowid FROM consumer_jobs WHERE {conditions.FINISHED} AND finished_at < ? ORDER BY finished_at LIMIT ?
)
"""  # noqa: S608 - constants only
PROBE = "INSERT OR REPLACE INTO consumer_probe (id, probed_at) VALUES (1, ?)"

T = TypeVar("T")


async def open_sqlite(path: str, clock: Clock) -> "SqliteBackend":
    refuse_network(path, MOUNTS.read_text())
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
    try:
        connection = await asyncio.get_running_loop().run_in_executor(thread, _connect, path)
    except sqlite3.Error as error:
        thread.shutdown()
        raise _unavailable(path, error) from error
    return SqliteBackend(path, connection, thread, clock)


class SqliteBackend:
    """Every method is one transaction on the store's thread."""

    def __init__(self, path: str, connection: sqlite3.Connection, thread: ThreadPoolExecutor, clock: Clock) -> None:
        self._path = path
        self._connection = connection
        self._thread = thread
        self._clock = clock

    async def claim(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        return await self._in_transaction(lambda: [self._claim(request) for request in requests])

    async def write(self, changes: Sequence[Change]) -> list[bool]:
        return await self._in_transaction(lambda: [self._write(change) for change in changes])

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        return await self._in_transaction(lambda: frozenset(ref for ref in refs if not self._renew(ref, lease)))

    async def find(self, kind: str, key: str) -> Row | None:
        return await self._in_thread(lambda: self._find(kind, key))

    async def submit(self, row: Row) -> Row:
        return await self._in_transaction(lambda: self._submit(row))

    async def stuck(self, grace: int) -> dict[Status, int]:
        return await self._in_thread(lambda: self._stuck(grace))

    async def overdue(self, kinds: Collection[str], grace: int, limit: int) -> list[Row]:
        return await self._in_thread(lambda: self._overdue(kinds, grace, limit))

    async def swept(self, refs: Sequence[Ref]) -> None:
        await self._in_transaction(lambda: self._swept(refs))

    async def prune(self, age: int, limit: int) -> int:
        return await self._in_transaction(
            lambda: self._connection.execute(PRUNE, (self._clock() - age, limit)).rowcount
        )

    async def probe(self) -> None:
        await self._in_transaction(lambda: self._connection.execute(PROBE, (self._clock(),)))

    async def close(self) -> None:
        await self._in_thread(self._connection.close)
        self._thread.shutdown()

    async def _in_transaction(self, work: Callable[[], T]) -> T:
        return await self._in_thread(lambda: _transaction(self._connection, work))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.DataError as error:
            raise StoreRefused(f"the store file {self._path} can't hold this data: {error}") from error
        except sqlite3.Error as error:
            raise _unavailable(self._path, error) from error

    # Everything below runs on the store's thread.

    def _claim(self, request: ClaimRequest) -> Claim:
        answer, row = decide(self._find(request.kind, request.key), request, self._clock())
        self._save(row)
        return answer

    def _write(self, change: Change) -> bool:
        says_so, row = apply(self._find(change.ref.kind, change.ref.key), change, self._clock())
        self._save(row)
        return says_so

    def _renew(self, ref: Ref, lease: int) -> bool:
        row = self._find(ref.kind, ref.key)
        if row is None or row.token != ref.token or row.status is not Status.PROCESSING:
            return False
        self._save(replace(row, lease_until=self._clock() + lease))
        return True

    def _submit(self, row: Row) -> Row:
        known = self._find(row.kind, row.key)
        if known is not None:
            return known
        submitted = replace(row, first_seen_at=self._clock())
        self._save(submitted)
        return submitted

    def _stuck(self, grace: int) -> dict[Status, int]:
        found = self._connection.execute(STUCK, (self._clock() - grace,))
        return {Status(record["status"]): record["count"] for record in found}

    def _overdue(self, kinds: Collection[str], grace: int, limit: int) -> list[Row]:
        now = self._clock()
        found = self._connection.execute(OVERDUE, (now - grace, now, json.dumps(sorted(kinds)), limit))
        return [to_row(record) for record in found]

    def _swept(self, refs: Sequence[Ref]) -> None:
        now = self._clock()
        self._connection.executemany(SWEPT, [(now, ref.kind, ref.key, ref.token) for ref in refs])

    def _find(self, kind: str, key: str) -> Row | None:
        record = self._connection.execute(FIND, (kind, key)).fetchone()
        return None if record is None else to_row(record)

    def _save(self, row: Row | None) -> None:
        if row is not None:
            self._connection.execute(SAVE, to_columns(row))


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        _use_wal(connection)
        # An acked message is gone from the broker, so its result must survive a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        _transaction(connection, lambda: _migrate(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite waits for a lock, but not here: of two starters on one new file, one is told at once that it's locked."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS consumer_migrations (name TEXT PRIMARY KEY)")
    done = {record["name"] for record in connection.execute("SELECT name FROM consumer_migrations")}
    for name, script in scripts("sqlite"):
        if name in done:
            continue
        # Not executescript(), which commits first: no half of a migration may stay.
        for statement in script.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO consumer_migrations (name) VALUES (?)", (name,))


def _transaction(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        answer = work()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return answer


def _unavailable(path: str, error: sqlite3.Error) -> StoreUnavailable:
    return StoreUnavailable(f"the store file {path} can't be used: {error}")
