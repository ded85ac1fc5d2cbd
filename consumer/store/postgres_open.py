"""Connecting to PostgreSQL, and its tables brought up to date by one of many starters at a time."""

import re

import asyncpg
from asyncpg.exceptions import ClientConfigurationError

from consumer.core.errors import SettingsError
from consumer.store.migration import scripts
from consumer.store.postgres import Connection, PostgresBackend
from consumer.store.postgres_errors import DRIVER_ERRORS, is_refusal, refused, unavailable

SESSIONS = 4
CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 10.0
STATEMENTS_KEPT = 100
MIGRATION_LOCK = int.from_bytes(b"consumer")

_HOST = r"(\[[0-9a-fA-F:]+\]|[\w.\-]*)(:\d+)?"
_PLACE = re.compile(rf"{_HOST}(,{_HOST})*(/[\w.\-]*)?")


async def open_postgres(url: str, *, prepared_statements: bool) -> PostgresBackend:
    pool = asyncpg.create_pool(
        url,
        min_size=0,  # or the pool reconnects by itself, and we would not hear what fails
        max_size=SESSIONS,
        timeout=CONNECT_SECONDS,
        command_timeout=COMMAND_SECONDS,
        reset=_nothing_to_reset,
        statement_cache_size=STATEMENTS_KEPT if prepared_statements else 0,
    )
    try:
        await _connect(pool, _place(url))
    except BaseException:
        pool.terminate()
        raise
    return PostgresBackend(pool, _place(url))


async def _connect(pool: asyncpg.Pool, place: str) -> None:
    try:
        await pool
        async with pool.acquire() as connection, connection.transaction():
            await _migrate(connection)
    except (ClientConfigurationError, ValueError) as error:
        raise SettingsError(
            "the store's URL can't be read: wanted postgresql://user:password@host:port/database, "
            "with special characters in the password percent-encoded"
        ) from error
    except DRIVER_ERRORS as error:
        raise (refused if is_refusal(error) else unavailable)(place, error) from error


async def _migrate(connection: Connection) -> None:
    """Users who may not create tables can start where nothing is left to create."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATION_LOCK)
    if await connection.fetchval("SELECT to_regclass('consumer_migrations')") is None:
        await connection.execute("CREATE TABLE consumer_migrations (name text PRIMARY KEY)")
    done = {record["name"] for record in await connection.fetch("SELECT name FROM consumer_migrations")}
    for name, script in scripts("postgres"):
        if name not in done:
            await connection.execute(script)
            await connection.execute("INSERT INTO consumer_migrations (name) VALUES ($1)", name)


async def _nothing_to_reset(_: Connection) -> None:
    """Sessions keep no state of ours, so the pool needn't spend a round trip on resetting them."""


def _place(url: str) -> str:
    """Host, port and database. A password with odd characters may end up anywhere: then nothing is shown."""
    place = url.partition("://")[2].rpartition("@")[2].partition("?")[0]
    return place if _PLACE.fullmatch(place) else "the configured URL"
