# ruff: noqa: S608 - every statement is built from constants
"""The outbox in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import fields

import asyncpg

from consumer.core.outbox import DOUBLINGS, Outgoing
from consumer.core.row import Change
from consumer.store import conditions
from consumer.store.sessions import Sessions
from consumer.store.statements import NOW

COLUMNS = tuple(field.name for field in fields(Outgoing))

_GIVEN = {
    "kind": "text",
    "key": "text",
    "payload": "bytea",
    "queue": "text",
    "delay": "bigint",
    "traceparent": "text",
    "deadline": "bigint",
}
_ARRAYS = ", ".join(f"${place}::{type_}[]" for place, type_ in enumerate(_GIVEN.values(), 2))
POST = f"""
INSERT INTO consumer_outbox (origin, kind, key, payload, queue, due, traceparent, deadline, submitted_at, take_at)
SELECT $1, n.kind, n.key, n.payload, n.queue, clock.now + nullif(n.delay, 0), n.traceparent, n.deadline, clock.now,
       CASE WHEN n.queue IS NULL THEN clock.now ELSE clock.now + n.delay END
FROM unnest({_ARRAYS}) WITH ORDINALITY AS n ({", ".join(_GIVEN)}, place)
CROSS JOIN (SELECT {NOW} AS now) AS clock
ORDER BY n.place
"""
"""What `store.change.outgoing` and `core.outbox.first_try` say; a test compares."""

TAKE = f"""
UPDATE consumer_outbox SET take_at = {NOW} + ($3::bigint << least(tries, {DOUBLINGS})), tries = tries + 1
WHERE id = ANY (ARRAY(
    SELECT id FROM consumer_outbox WHERE origin = $1 AND take_at <= (SELECT {NOW})
    ORDER BY take_at, id LIMIT $2
    FOR UPDATE SKIP LOCKED
))
RETURNING {", ".join(COLUMNS)}
"""
UNSENT = f"""
SELECT count(*) FROM (
    SELECT 1 FROM consumer_outbox WHERE origin = $1 AND {conditions.unsent(f"(SELECT {NOW})")}
    LIMIT {conditions.COUNTED}
) AS unsent
"""
SENT = "DELETE FROM consumer_outbox WHERE id = ANY ($1::bigint[])"


class PostgresOutbox:
    """`origin` is the work queue whose follow-ups these are."""

    def __init__(self, sessions: Sessions, origin: str) -> None:
        self._sessions = sessions
        self._origin = origin

    async def post(self, connection: asyncpg.Connection, changes: Sequence[Change]) -> None:
        """In the transaction that `connection` is in."""
        posted = [
            (each.kind, each.key, each.payload, each.queue, each.delay, change.traceparent, change.deadline)
            for change in changes
            for each in change.follow_ups
        ]
        if posted:
            await connection.execute(POST, self._origin, *zip(*posted, strict=True))

    async def take(self, limit: int, lease: int) -> list[Outgoing]:
        async with self._sessions.lend() as connection:
            taken = await connection.fetch(TAKE, self._origin, limit, lease)
        return sorted((Outgoing(*record) for record in taken), key=lambda outgoing: outgoing.id)

    async def sent(self, ids: Sequence[int]) -> None:
        async with self._sessions.lend() as connection:
            await connection.execute(SENT, ids)

    async def unsent(self) -> int:
        async with self._sessions.lend() as connection:
            count: int = await connection.fetchval(UNSENT, self._origin)
        return count
