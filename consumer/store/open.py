"""From a URL to a store. Each driver is imported only where its URL is used."""

import time
from urllib.parse import unquote

from consumer.core.errors import SettingsError
from consumer.core.ports import Clock
from consumer.store.grouped import Backend, GroupedStore, Observe, unobserved

WANTED = "sqlite:///file, sqlite:////absolute/file, postgresql://user:password@host:port/database or memory://"


def system_clock() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


async def open_store(
    url: str,
    *,
    prepared_statements: bool = True,
    observe: Observe = unobserved,
    clock: Clock = system_clock,
    origin: str = "",
) -> GroupedStore:
    """Connect, and bring the tables up to date.

    SettingsError where waiting can't help, StoreUnavailable where the caller may try again. `clock` is for
    SQLite and memory; PostgreSQL has its own. `prepared_statements=False` is for pgbouncer before 1.21, or
    with max_prepared_statements at 0, in transaction mode: its sessions can't keep them. It costs CPU.
    `origin` is the work queue whose follow-ups the caller writes and sends.
    """
    return GroupedStore(await _open_backend(url, prepared_statements, clock, origin), observe)


async def _open_backend(url: str, prepared_statements: bool, clock: Clock, origin: str) -> Backend:
    scheme, _, rest = url.partition("://")
    if scheme in {"postgresql", "postgres"}:
        from consumer.store.postgres_open import open_postgres  # noqa: PLC0415 - only where it is used

        return await open_postgres(url, origin, prepared_statements=prepared_statements)
    if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
        from consumer.store.sqlite_open import open_sqlite  # noqa: PLC0415 - only where it is used

        return await open_sqlite(unquote(rest[1:]), clock, origin)
    if scheme == "memory":
        from consumer.store.memory import MemoryBackend  # noqa: PLC0415 - only where it is used

        return MemoryBackend(clock)
    raise SettingsError(f"the store's URL can't be read: wanted {WANTED}")
