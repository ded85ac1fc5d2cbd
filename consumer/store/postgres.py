"""PostgreSQL, for production and many replicas.

A statement or a short transaction is all that a session is ever used for, and nothing is left behind in it:
this works behind pgbouncer in transaction mode. The common cases, a new job and a result, are one statement a
batch; everything else locks its rows and asks the same pure functions as the other backends.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

import asyncpg

from consumer.core.claim import Claim, ClaimRequest
from consumer.core.cooldown import Cooldown
from consumer.core.outbox import Outgoing
from consumer.core.row import Change, Mark, Ref, Row, Status
from consumer.store import postgres_rows as rows
from consumer.store import statements as sql
from consumer.store.change import storable
from consumer.store.columns import to_row
from consumer.store.cooldowns_sql import COOLDOWNS
from consumer.store.letters_postgres import PostgresLetters
from consumer.store.outbox_postgres import PostgresOutbox
from consumer.store.postgres_rows import Name
from consumer.store.sessions import Sessions

Item = TypeVar("Item")
T = TypeVar("T")


class PostgresBackend:
    def __init__(self, sessions: Sessions, origin: str) -> None:
        self._sessions = sessions
        self._outbox = PostgresOutbox(sessions, origin)
        self.letters = PostgresLetters(sessions)

    async def claim(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        answers: dict[Name, Claim] = {}
        # A second round is rare: a row was there for the first statement, and pruned before the second.
        while left := _unanswered(requests, answers):
            answers |= await self._restartable(rows.claim_fresh, left)
            if known := _unanswered(left, answers):
                answers |= await self._restartable(rows.claim_known, known)
        return [answers[request.kind, request.key] for request in requests]

    async def write(self, changes: Sequence[Change]) -> list[bool]:
        answers: dict[Name, bool] = {}
        results = [change for change in changes if change.status is Status.SUCCEEDED]
        if plain := [change for change in results if not change.follow_ups]:
            answers |= await self._restartable(rows.complete, plain)
        if parents := [change for change in results if change.follow_ups]:
            answers |= await self._restartable(self._complete_with_follow_ups, parents)
        # Failures, releases, and results that found their claim gone or were written before.
        if others := [change for change in changes if (change.ref.kind, change.ref.key) not in answers]:
            answers |= await self._restartable(rows.apply_all, others)
        return [answers[change.ref.kind, change.ref.key] for change in changes]

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        async def extend(connection: asyncpg.Connection, refs: Sequence[Ref]) -> frozenset[Ref]:
            ours = await connection.fetch(sql.RENEW, *rows.ref_columns(refs), lease)
            return frozenset(refs) - {Ref(*record) for record in ours}

        return await self._restartable(extend, refs)

    async def find(self, kind: str, key: str) -> Row | None:
        async with self._sessions.lend() as connection:
            record = await connection.fetchrow(sql.FIND, kind, key)
        return None if record is None else to_row(record)

    async def cancel(self, kind: str, key: str, by: str) -> Row:
        while True:
            async with self._sessions.lend() as connection, connection.transaction():
                if (row := await rows.cancel(connection, kind, key, by)) is not None:
                    return row

    async def cancelled(self, refs: Sequence[Ref]) -> frozenset[Ref]:
        async with self._sessions.lend() as connection:
            found = await connection.fetch(sql.CANCELLED, *rows.ref_columns(refs))
        return frozenset(Ref(*record) for record in found)

    async def progress(self, marks: Sequence[Mark]) -> None:
        async def note(connection: asyncpg.Connection, marks: Sequence[Mark]) -> None:
            said = [mark.fraction for mark in marks], [storable(mark.note) for mark in marks]
            await connection.execute(sql.PROGRESS, *rows.ref_columns([mark.ref for mark in marks]), *said)

        await self._restartable(note, marks)

    async def submit(self, row: Row) -> Row:
        async with self._sessions.lend() as connection:
            record = None
            while record is None:
                record = await rows.insert(connection, row)
                record = record or await connection.fetchrow(sql.FIND, row.kind, row.key)
        return to_row(record)

    async def stuck(self, grace: int) -> dict[Status, int]:
        async with self._sessions.lend() as connection:
            found = await connection.fetch(sql.STUCK, grace)
        return {Status(record["status"]): record["count"] for record in found}

    async def overdue(self, kinds: Collection[str], grace: int, limit: int) -> list[Row]:
        async with self._sessions.lend() as connection:
            found = await connection.fetch(sql.OVERDUE, sql.SWEEP_LOCK, list(kinds), grace, limit)
        return [to_row(record) for record in found]

    async def swept(self, refs: Sequence[Ref]) -> None:
        async def note(connection: asyncpg.Connection, refs: Sequence[Ref]) -> None:
            await connection.execute(sql.SWEPT, *rows.ref_columns(refs))

        await self._restartable(note, refs)

    async def prune(self, age: int, limit: int) -> int:
        async with self._sessions.lend() as connection:
            pruned: int = await connection.fetchval(sql.PRUNE, sql.SWEEP_LOCK, age, limit)
        return pruned

    async def outbox(self, limit: int, lease_ms: int) -> list[Outgoing]:
        return await self._outbox.take(limit, lease_ms)

    async def sent(self, ids: Sequence[int]) -> None:
        await self._outbox.sent(ids)

    async def unsent(self) -> int:
        return await self._outbox.unsent()

    async def cool(self, cooldown: Cooldown) -> None:
        async with self._sessions.lend() as connection:
            await connection.execute(sql.COOL, cooldown.kind, cooldown.until, storable(cooldown.why))

    async def warm(self, kind: str) -> None:
        async with self._sessions.lend() as connection:
            await connection.execute(sql.WARM, kind)

    async def cooldowns(self) -> list[Cooldown]:
        async with self._sessions.lend() as connection:
            return [Cooldown(*record) for record in await connection.fetch(COOLDOWNS)]

    async def probe(self) -> None:
        async with self._sessions.lend() as connection:
            await connection.execute(sql.PROBE)

    async def close(self) -> None:
        await self._sessions.close()

    async def _complete_with_follow_ups(
        self, connection: asyncpg.Connection, changes: Sequence[Change]
    ) -> dict[Name, bool]:
        async with connection.transaction():
            answers = await rows.complete(connection, changes)
            counted = [change for change in changes if (change.ref.kind, change.ref.key) in answers]
            await self._outbox.post(connection, counted)
        return answers

    async def _restartable(
        self, work: Callable[[asyncpg.Connection, Sequence[Item]], Awaitable[T]], batch: Sequence[Item]
    ) -> T:
        """Do it, and once more where the server undid it to break a deadlock."""
        async with self._sessions.lend() as connection:
            try:
                return await work(connection, batch)
            except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
                return await work(connection, batch)


def _unanswered(requests: Sequence[ClaimRequest], answers: Mapping[Name, Claim]) -> list[ClaimRequest]:
    return [request for request in requests if (request.kind, request.key) not in answers]
