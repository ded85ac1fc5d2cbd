"""PostgreSQL, for production and many replicas.

A statement or a short transaction is all that a session is ever used for, and nothing is left behind in it:
this works behind pgbouncer in transaction mode. The common cases, a new job and a result, are one statement a
batch; everything else locks its rows and asks the same pure functions as the other backends.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import asyncpg

from consumer.core.claim import Claim, ClaimRequest, Run, decide
from consumer.core.errors import StoreRefused
from consumer.core.row import Change, Ref, Row, Status
from consumer.store import statements as sql
from consumer.store.change import apply
from consumer.store.columns import COLUMNS, to_columns, to_row
from consumer.store.sessions import Sessions

Name = tuple[str, str]
"""Kind and key."""
Item = TypeVar("Item")
T = TypeVar("T")


class PostgresBackend:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def claim(self, requests: Sequence[ClaimRequest]) -> list[Claim]:
        answers: dict[Name, Claim] = {}
        # A second round is rare: a row was there for the first statement, and pruned before the second.
        while left := _unanswered(requests, answers):
            answers |= await self._restartable(_claim_fresh, left)
            if known := _unanswered(left, answers):
                answers |= await self._restartable(_claim_known, known)
        return [answers[request.kind, request.key] for request in requests]

    async def write(self, changes: Sequence[Change]) -> list[bool]:
        answers: dict[Name, bool] = {}
        if results := [change for change in changes if change.status is Status.SUCCEEDED]:
            answers |= await self._restartable(_complete, results)
        # Failures, releases, and results that found their claim gone or were written before.
        if others := [change for change in changes if (change.ref.kind, change.ref.key) not in answers]:
            answers |= await self._restartable(_apply, others)
        return [answers[change.ref.kind, change.ref.key] for change in changes]

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        async def extend(connection: asyncpg.Connection, refs: Sequence[Ref]) -> frozenset[Ref]:
            ours = await connection.fetch(sql.RENEW, *_ref_columns(refs), lease)
            return frozenset(refs) - {Ref(*record) for record in ours}

        return await self._restartable(extend, refs)

    async def find(self, kind: str, key: str) -> Row | None:
        async with self._sessions.lend() as connection:
            record = await connection.fetchrow(sql.FIND, kind, key)
        return None if record is None else to_row(record)

    async def submit(self, row: Row) -> Row:
        values = dict(zip(COLUMNS, to_columns(row), strict=True))
        async with self._sessions.lend() as connection:
            record = None
            while record is None:
                record = await connection.fetchrow(sql.SUBMIT, *(values[name] for name in sql.SUBMIT_PARAMETERS))
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
            await connection.execute(sql.SWEPT, *_ref_columns(refs))

        await self._restartable(note, refs)

    async def prune(self, age: int, limit: int) -> int:
        async with self._sessions.lend() as connection:
            pruned: int = await connection.fetchval(sql.PRUNE, sql.SWEEP_LOCK, age, limit)
        return pruned

    async def probe(self) -> None:
        async with self._sessions.lend() as connection:
            await connection.execute(sql.PROBE)

    async def close(self) -> None:
        await self._sessions.close()

    async def _restartable(
        self, work: Callable[[asyncpg.Connection, Sequence[Item]], Awaitable[T]], batch: Sequence[Item]
    ) -> T:
        """Do it, and once more where the server undid it to break a deadlock."""
        async with self._sessions.lend() as connection:
            try:
                return await work(connection, batch)
            except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
                return await work(connection, batch)


async def _claim_fresh(connection: asyncpg.Connection, requests: Sequence[ClaimRequest]) -> dict[Name, Claim]:
    columns = ([getattr(request, name) for request in requests] for name in sql.CLAIM_FRESH_PARAMETERS)
    inserted = {tuple(record) for record in await connection.fetch(sql.CLAIM_FRESH, *columns)}
    return {
        (request.kind, request.key): Run(token=1, attempt=request.attempt, generation=request.generation)
        for request in requests
        if (request.kind, request.key) in inserted
    }


async def _claim_known(connection: asyncpg.Connection, requests: Sequence[ClaimRequest]) -> dict[Name, Claim]:
    by_name = {(request.kind, request.key): request for request in requests}
    answers: dict[Name, Claim] = {}
    changed: list[Row] = []
    async with connection.transaction():
        for name, record in (await _lock(connection, by_name)).items():
            answers[name], row = decide(to_row(record), by_name[name], record["now"])
            if row is not None:
                changed.append(row)
        await _save(connection, changed)
    return answers


async def _complete(connection: asyncpg.Connection, changes: Sequence[Change]) -> dict[Name, bool]:
    parameters = (
        [None if change.result is None else change.result.decode() for change in changes],
        [change.started_at for change in changes],
        [change.finished_at for change in changes],
        [change.cpu_seconds for change in changes],
        [change.peak_memory for change in changes],
    )
    try:
        records = await connection.fetch(sql.COMPLETE, *_ref_columns([change.ref for change in changes]), *parameters)
    except asyncpg.IntegrityConstraintViolationError as error:
        # Their claims met the same table, so it is a result that meets a constraint that somebody added for results.
        raise StoreRefused(f"the database has a constraint against this result: {type(error).__name__}") from error
    return {(record["kind"], record["key"]): True for record in records}


async def _apply(connection: asyncpg.Connection, changes: Sequence[Change]) -> dict[Name, bool]:
    by_name = {(change.ref.kind, change.ref.key): change for change in changes}
    answers = dict.fromkeys(by_name, False)
    changed: list[Row] = []
    async with connection.transaction():
        for name, record in (await _lock(connection, by_name)).items():
            answers[name], row = apply(to_row(record), by_name[name], record["now"])
            if row is not None:
                changed.append(row)
        await _save(connection, changed)
    return answers


async def _lock(connection: asyncpg.Connection, names: Mapping[Name, object]) -> dict[Name, Mapping[str, Any]]:
    kinds, keys = zip(*names, strict=True)
    records = await connection.fetch(sql.LOCK, kinds, keys)
    return {(record["kind"], record["key"]): record for record in records}


async def _save(connection: asyncpg.Connection, rows: Sequence[Row]) -> None:
    if rows:
        columns = dict(zip(COLUMNS, zip(*map(to_columns, rows), strict=True), strict=True))
        await connection.execute(sql.SAVE, *(columns[name] for name in sql.STATE))


def _ref_columns(refs: Sequence[Ref]) -> tuple[list[str], list[str], list[int]]:
    return [ref.kind for ref in refs], [ref.key for ref in refs], [ref.token for ref in refs]


def _unanswered(requests: Sequence[ClaimRequest], answers: Mapping[Name, Claim]) -> list[ClaimRequest]:
    return [request for request in requests if (request.kind, request.key) not in answers]
