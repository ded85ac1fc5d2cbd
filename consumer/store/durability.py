"""Whether a database keeps what it said it committed."""

from collections.abc import Mapping

COMMITS = ("synchronous_commit", "fsync")
SECONDS = 5.0


async def durability(url: str) -> Mapping[str, str]:
    """What PostgreSQL's settings say of it, for sessions of our user; nothing for other stores.

    Raises what the driver does: whoever asks has opened the store before.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        return {}
    import asyncpg  # noqa: PLC0415 - only where it is used

    session = await asyncpg.connect(url, timeout=SECONDS, command_timeout=SECONDS, statement_cache_size=0)
    try:
        return {name: await session.fetchval(f"SHOW {name}") for name in COMMITS}
    finally:
        await session.close(timeout=SECONDS)
