"""Cooldowns in SQL that both databases read. `mark` begins a numbered parameter: $1 in PostgreSQL, ?1 in SQLite."""

COOLDOWNS = "SELECT kind, until, why FROM consumer_cooldowns"


def cool(mark: str) -> str:
    """Of two cooldowns of a kind the longer one stays."""
    return f"""
    INSERT INTO consumer_cooldowns (kind, until, why) VALUES ({mark}1, {mark}2, {mark}3)
    ON CONFLICT (kind) DO UPDATE SET until = excluded.until, why = excluded.why
    WHERE excluded.until > consumer_cooldowns.until
    """  # noqa: S608 - a constant


def warm(mark: str) -> str:
    return f"DELETE FROM consumer_cooldowns WHERE kind = {mark}1"  # noqa: S608 - a constant
