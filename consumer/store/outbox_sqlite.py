"""The outbox in SQLite, on the thread and the connection of its store."""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields

from consumer.core.outbox import Outgoing, first_try, next_try
from consumer.core.row import Change
from consumer.store import conditions
from consumer.store.change import outgoing

COLUMNS = tuple(field.name for field in fields(Outgoing))
POST = (
    f"INSERT INTO consumer_outbox (origin, take_at, {', '.join(COLUMNS[1:])}) "  # noqa: S608 - constants only
    f"VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"
)
READY = f"""
SELECT {", ".join(COLUMNS)}, tries FROM consumer_outbox
WHERE origin = ? AND take_at <= ? ORDER BY take_at, id LIMIT ?
"""  # noqa: S608 - constants only
TAKE = "UPDATE consumer_outbox SET take_at = ?, tries = tries + 1 WHERE id = ?"
UNSENT = f"""
SELECT count(*) FROM (
    SELECT 1 FROM consumer_outbox WHERE origin = ? AND {conditions.unsent("?")} LIMIT {conditions.COUNTED}
)
"""  # noqa: S608 - constants only
SENT = "DELETE FROM consumer_outbox WHERE id = ?"


class SqliteOutbox:
    """`origin` is the work queue whose follow-ups these are."""

    def __init__(self, connection: sqlite3.Connection, origin: str) -> None:
        self._connection = connection
        self._origin = origin

    def post(self, change: Change, now: int) -> None:
        for follow_up in change.follow_ups:
            values = astuple(outgoing(follow_up, change, now))
            self._connection.execute(POST, (self._origin, first_try(follow_up, now), *values[1:]))

    def take(self, limit: int, lease: int, now: int) -> list[Outgoing]:
        ready = self._connection.execute(READY, (self._origin, now, limit)).fetchall()
        again = [(next_try(now, lease, record["tries"]), record["id"]) for record in ready]
        self._connection.executemany(TAKE, again)
        return [Outgoing(*tuple(record)[: len(COLUMNS)]) for record in ready]

    def unsent(self, now: int) -> int:
        count: int = self._connection.execute(UNSENT, (self._origin, now)).fetchone()[0]
        return count

    def sent(self, ids: Sequence[int]) -> None:
        self._connection.executemany(SENT, [(number,) for number in ids])
