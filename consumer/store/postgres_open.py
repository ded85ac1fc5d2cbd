"""Connecting to PostgreSQL, and its tables brought up to date by one of many starters at a time."""

import re
from functools import partial

import asyncpg
from asyncpg.exceptions import ClientConfigurationError

from consumer.core.errors import SettingsError, StoreUnavailable
from consumer.store.migration import scripts
from consumer.store.postgres import PostgresBackend
from consumer.store.postgres_errors import forgets_statements, is_refusal
from consumer.store.sessions import Sessions

CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 10.0
STATEMENTS_KEPT = 100
SCRIPT_SECONDS = 3600.0
"""For a script of a migration: an index of a large table takes its time, and whoever gave up would begin anew."""
LOCK_MS = 5000
"""How long a script may wait for a lock, since everybody else waits behind it."""
MIGRATION_LOCK = int.from_bytes(b"consumer")

_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.\-]*)(:\d+)?"
_PLACE = re.compile(rf"{_HOST}(,{_HOST})*(/[\w.\-]*)?")


def sessions_to(url: str, *, prepared_statements: bool) -> Sessions:
    connect = partial(
        asyncpg.connect,
        url,
        timeout=CONNECT_SECONDS,
        command_timeout=COMMAND_SECONDS,
        statement_cache_size=STATEMENTS_KEPT if prepared_statements else 0,
    )
    return Sessions(connect, _place(url))


async def open_postgres(url: str, origin: str, *, prepared_statements: bool) -> PostgresBackend:
    sessions = sessions_to(url, prepared_statements=prepared_statements)
    try:
        async with sessions.lend() as session, session.transaction():
            await _migrate(session)
    except ValueError as error:
        raise _unreadable() from error
    except StoreUnavailable as error:
        await sessions.close()
        cause = error.__cause__
        if isinstance(cause, ClientConfigurationError):
            raise _unreadable() from cause
        if is_refusal(cause):
            advice = "" if forgets_statements(cause) else "; check the user, the user's privileges and the database"
            raise SettingsError(f"{error}{advice}") from cause
        raise
    return PostgresBackend(sessions, origin)


def _unreadable() -> SettingsError:
    return SettingsError(
        "the store's URL can't be read: wanted postgresql://user:password@host:port/database, "
        "with special characters in the password percent-encoded"
    )


async def _migrate(session: asyncpg.Connection) -> None:
    """Users who may not create tables can start where nothing is left to create."""
    await session.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    if await session.fetchval("SELECT to_regclass('consumer_migrations')") is None:
        await session.execute("CREATE TABLE consumer_migrations (name text PRIMARY KEY)")
    done = {record["name"] for record in await session.fetch("SELECT name FROM consumer_migrations")}
    await session.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
    for name, script in scripts("postgres"):
        if name not in done:
            await session.execute(script, timeout=SCRIPT_SECONDS)
            await session.execute("INSERT INTO consumer_migrations (name) VALUES ($1)", name)


def _place(url: str) -> str:
    """Host, port and database. A password with odd characters may end up anywhere: then nothing is shown."""
    place = url.partition("://")[2].rpartition("@")[2].partition("?")[0]
    return place if _PLACE.fullmatch(place) else "the configured URL"
