"""Whether a database keeps what it said it committed."""

from collections.abc import Mapping

COMMITS = ("synchronous_commit", "fsync")


async def durability(url: str) -> Mapping[str, str]:
    """What PostgreSQL's settings say of it, for sessions of our user; nothing for other stores.

    Raises StoreUnavailable.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        return {}
    from consumer.store.postgres_open import sessions_to  # noqa: PLC0415 - only where it is used

    sessions = sessions_to(url, prepared_statements=False)
    try:
        async with sessions.lend() as session:
            return {name: await session.fetchval(f"SHOW {name}") for name in COMMITS}
    finally:
        await sessions.close()
