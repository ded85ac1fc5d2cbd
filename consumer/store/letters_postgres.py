# ruff: noqa: S608 - every statement is built from constants
"""The index of dead letters in PostgreSQL."""

from collections.abc import Collection, Sequence
from typing import Any

from consumer.core.letters import Letter, State
from consumer.store import letters_sql as sql
from consumer.store.letters_looks import Looks
from consumer.store.sessions import Sessions
from consumer.store.statements import NOW

QUERIES = sql.Dialect("$", "= ANY ({}::text[])")

_ARRAYS = ", ".join(f"${place}::{type_}[]" for place, type_ in enumerate(sql.TYPES.values(), 1))
BURY = f"""
INSERT INTO consumer_dead_letters ({", ".join(sql.TYPES)})
SELECT * FROM unnest({_ARRAYS}) AS n ({", ".join(sql.TYPES)}) ORDER BY n.id COLLATE "C"
{sql.NEWEST_WORD}
"""
MARK = """
WITH known AS MATERIALIZED (
    SELECT id FROM consumer_dead_letters WHERE id = ANY ($1::text[]) ORDER BY id FOR NO KEY UPDATE
)
UPDATE consumer_dead_letters AS l SET state = $2, state_at = greatest(state_at, $3)
FROM known WHERE l.id = known.id RETURNING l.id
"""
PRUNE = f"""
WITH pruned AS (
    DELETE FROM consumer_dead_letters WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM consumer_dead_letters WHERE {sql.PRUNED} (SELECT {NOW}) - $1::bigint
        ORDER BY state_at LIMIT $2 FOR UPDATE SKIP LOCKED
    ))
    RETURNING 1
)
SELECT count(*) FROM pruned
"""


class PostgresLetters(Looks):
    """Writers lock letters in the order of their ids, so that no two of them wait for each other."""

    def __init__(self, sessions: Sessions) -> None:
        super().__init__(QUERIES)
        self._sessions = sessions

    async def bury(self, letters: Sequence[Letter]) -> None:
        columns = zip(*map(sql.to_columns, letters), strict=True)
        async with self._sessions.lend() as connection:
            await connection.execute(BURY, *columns)

    async def mark(self, ids: Collection[str], state: State, at: int) -> frozenset[str]:
        known = await self._ask(sql.Query(MARK, (list(ids), state.value, at)))
        return frozenset(record["id"] for record in known)

    async def prune(self, age: int, limit: int) -> int:
        [[count]] = await self._ask(sql.Query(PRUNE, (age, limit)))
        return int(count)

    async def _ask(self, query: sql.Query) -> list[Any]:
        async with self._sessions.lend() as connection:
            found: list[Any] = await connection.fetch(query.text, *query.parameters)
        return found
