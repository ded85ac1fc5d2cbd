"""Opening a SQLite file: where it may be, how it is kept, and its tables brought up to date."""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

from consumer.core.ports import Clock
from consumer.store.filesystem import MOUNTS, refuse_network
from consumer.store.migration import scripts
from consumer.store.sqlite import SqliteBackend, transaction, unavailable

BUSY_SECONDS = 5.0
"""How long a transaction waits for another process that writes to the same file."""


async def open_sqlite(path: str, clock: Clock, origin: str) -> SqliteBackend:
    refuse_network(path, MOUNTS.read_text(errors="surrogateescape"))
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
    try:
        connection = await asyncio.get_running_loop().run_in_executor(thread, _connect, path)
    except sqlite3.Error as error:
        thread.shutdown()
        raise unavailable(path, error) from error
    return SqliteBackend(path, connection, thread, clock, origin)


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        _use_wal(connection)
        # An acked message is gone from the broker, so its result must survive a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        transaction(connection, lambda: _migrate(connection))
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
