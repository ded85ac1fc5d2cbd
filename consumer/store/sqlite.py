"""SQLite, the embedded default: one file, one writer, one thread that the event loop never waits in."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from consumer.core import cancel
from consumer.core.claim import Claim, ClaimRequest, decide
from consumer.core.cooldown import Cooldown
from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.core.outbox import Outgoing
from consumer.core.ports import Clock
from consumer.core.row import Change, Mark, Ref, Row, Status
from consumer.store import conditions
from consumer.store.change import apply, storable
from consumer.store.columns import COLUMNS, to_columns, to_row
from consumer.store.cooldowns_sql import COOLDOWNS, cool, warm
from consumer.store.letters_sqlite import SqliteLetters
from consumer.store.outbox_sqlite import SqliteOutbox

FIND = "SELECT * FROM consumer_jobs WHERE kind = ? AND key = ?"
SAVE = (
    f"INSERT OR REPLACE INTO consumer_jobs ({', '.join(COLUMNS)}) "  # noqa: S608 - constants only
    f"VALUES ({', '.join(f':{name}' for name in COLUMNS)})"
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
PROGRESS = """
UPDATE consumer_jobs SET progress = ?, progress_note = ?
WHERE kind = ? AND key = ? AND token = ? AND status = 'processing'
"""
SWEPT = "UPDATE consumer_jobs SET swept_at = ? WHERE kind = ? AND key = ? AND token = ?"
PRUNE = f"""
DELETE FROM consumer_jobs WHERE rowid IN (
    SELECT rowid FROM consumer_jobs WHERE {conditions.forgettable("?1")} ORDER BY finished_at LIMIT ?2
)
"""  # noqa: S608 - constants only
COOL, WARM = cool("?"), warm("?")
PROBE = "INSERT OR REPLACE INTO consumer_probe (id, probed_at) VALUES (1, ?)"

WAYS_OUT = {
    sqlite3.SQLITE_CANTOPEN: "; its folder must be there, and writable",
    sqlite3.SQLITE_NOTADB: "; name another file in store.url",
}

T = TypeVar("T")


class SqliteBackend:
    """Every method is one transaction on the store's thread."""

    def __init__(
        self, path: str, connection: sqlite3.Connection, thread: ThreadPoolExecutor, clock: Clock, origin: str
    ) -> None:
        self._path = path
        self._connection = connection
        self._thread = thread
        self._clock = clock
        self._outbox = SqliteOutbox(connection, origin)
        self.letters = SqliteLetters(connection, self._in_thread, self._in_transaction, clock)

    async def claim(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        return await self._in_transaction(lambda: [self._claim(request) for request in requests])

    async def write(self, changes: Sequence[Change]) -> list[bool]:
        return await self._in_transaction(lambda: [self._write(change) for change in changes])

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        return await self._in_transaction(lambda: frozenset(ref for ref in refs if not self._renew(ref, lease)))

    async def find(self, kind: str, key: str) -> Row | None:
        return await self._in_thread(lambda: self._find(kind, key))

    async def cancel(self, kind: str, key: str, by: str) -> Row:
        return await self._in_transaction(lambda: self._cancel(kind, key, by))

    async def cancelled(self, refs: Sequence[Ref]) -> frozenset[Ref]:
        return await self._in_thread(lambda: frozenset(ref for ref in refs if self._is_cancelled(ref)))

    async def progress(self, marks: Sequence[Mark]) -> None:
        values = [(m.fraction, storable(m.note), m.ref.kind, m.ref.key, m.ref.token) for m in marks]
        await self._in_transaction(lambda: self._connection.executemany(PROGRESS, values))

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

    async def outbox(self, limit: int, lease_ms: int) -> list[Outgoing]:
        return await self._in_transaction(lambda: self._outbox.take(limit, lease_ms, self._clock()))

    async def sent(self, ids: Sequence[int]) -> None:
        await self._in_transaction(lambda: self._outbox.sent(ids))

    async def unsent(self) -> int:
        return await self._in_thread(lambda: self._outbox.unsent(self._clock()))

    async def cool(self, cooldown: Cooldown) -> None:
        values = (cooldown.kind, cooldown.until, storable(cooldown.why))
        await self._in_transaction(lambda: self._connection.execute(COOL, values))

    async def warm(self, kind: str) -> None:
        await self._in_transaction(lambda: self._connection.execute(WARM, (kind,)))

    async def cooldowns(self) -> list[Cooldown]:
        found = await self._in_thread(lambda: self._connection.execute(COOLDOWNS).fetchall())
        return [Cooldown(*record) for record in found]

    async def probe(self) -> None:
        await self._in_transaction(lambda: self._connection.execute(PROBE, (self._clock(),)))

    async def close(self) -> None:
        await self._in_thread(self._connection.close)
        self._thread.shutdown()

    async def _in_transaction(self, work: Callable[[], T]) -> T:
        return await self._in_thread(lambda: transaction(self._connection, work))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.DataError as error:
            raise StoreRefused(f"the store file {self._path} can't hold this data: {error}") from error
        except sqlite3.Error as error:
            raise unavailable(self._path, error) from error

    # Everything below runs on the store's thread.

    def _claim(self, request: ClaimRequest) -> Claim:
        answer, row = decide(self._find(request.kind, request.key), request, self._clock())
        self._save(row)
        return answer

    def _write(self, change: Change) -> bool:
        now = self._clock()
        says_so, row = apply(self._find(change.ref.kind, change.ref.key), change, now)
        if row is not None:
            self._save(row)
            self._outbox.post(change, now)
        return says_so

    def _renew(self, ref: Ref, lease: int) -> bool:
        row = self._find(ref.kind, ref.key)
        if row is None or row.token != ref.token or row.status is not Status.PROCESSING:
            return False
        self._save(replace(row, lease_until=self._clock() + lease))
        return True

    def _cancel(self, kind: str, key: str, by: str) -> Row:
        known = self._find(kind, key)
        row = cancel.decide(known, kind, key, by, self._clock())
        if row is not known:
            self._save(row)
        return row

    def _is_cancelled(self, ref: Ref) -> bool:
        row = self._find(ref.kind, ref.key)
        return row is not None and row.status is Status.CANCELLED

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


def transaction(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        answer = work()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return answer


def unavailable(path: str, error: sqlite3.Error) -> StoreUnavailable:
    way_out = WAYS_OUT.get(getattr(error, "sqlite_errorcode", 0), "")
    return StoreUnavailable(f"the store file {path} can't be used: {error}{way_out}")
