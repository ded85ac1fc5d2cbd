"""What one PostgreSQL session does to rows: batches of claims and writes, and single rows.

Rows are locked in the order of (kind, key), so that no two sessions can wait for each other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from consumer.core.cancel import decide as cancelled
from consumer.core.claim import Claim, ClaimRequest, Run, decide
from consumer.core.errors import StoreRefused
from consumer.core.row import Change, Ref, Row
from consumer.store import statements as sql
from consumer.store.change import apply
from consumer.store.columns import to_columns, to_row

Name = tuple[str, str]
"""Kind and key."""


async def claim_fresh(connection: asyncpg.Connection, requests: Sequence[ClaimRequest]) -> dict[Name, Claim]:
    columns = ([getattr(request, name) for request in requests] for name in sql.CLAIM_FRESH_PARAMETERS)
    inserted = {tuple(record) for record in await connection.fetch(sql.CLAIM_FRESH, *columns)}
    return {
        (request.kind, request.key): Run(token=1, attempt=request.attempt, generation=request.generation)
        for request in requests
        if (request.kind, request.key) in inserted
    }


async def claim_known(connection: asyncpg.Connection, requests: Sequence[ClaimRequest]) -> dict[Name, Claim]:
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


async def complete(connection: asyncpg.Connection, changes: Sequence[Change]) -> dict[Name, bool]:
    parameters = (
        [None if change.result is None else change.result.decode() for change in changes],
        [change.started_at for change in changes],
        [change.finished_at for change in changes],
        [change.cpu_seconds for change in changes],
        [change.peak_memory for change in changes],
    )
    try:
        records = await connection.fetch(sql.COMPLETE, *ref_columns([change.ref for change in changes]), *parameters)
    except asyncpg.IntegrityConstraintViolationError as error:
        # Their claims met the same table, so it is a result that meets a constraint that somebody added for results.
        raise StoreRefused(f"the database has a constraint against this result: {type(error).__name__}") from error
    return {(record["kind"], record["key"]): True for record in records}


async def apply_all(connection: asyncpg.Connection, changes: Sequence[Change]) -> dict[Name, bool]:
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


async def cancel(connection: asyncpg.Connection, kind: str, key: str, by: str) -> Row | None:
    """None where somebody inserted the row, or pruned it, between two statements."""
    locked = await _lock(connection, {(kind, key): None})
    if not locked:
        tombstone = cancelled(None, kind, key, by, await connection.fetchval(f"SELECT {sql.NOW}"))
        record = await insert(connection, tombstone)
        return None if record is None else to_row(record)
    [record] = locked.values()
    known = to_row(record)
    row = cancelled(known, kind, key, by, record["now"])
    if row is not known:
        await _save(connection, [row])
    return to_row(await connection.fetchrow(sql.FIND, kind, key))


async def insert(connection: asyncpg.Connection, row: Row) -> asyncpg.Record | None:
    values = to_columns(row)
    return await connection.fetchrow(sql.SUBMIT, *(values[name] for name in sql.SUBMIT_PARAMETERS))


async def _lock(connection: asyncpg.Connection, names: Mapping[Name, object]) -> dict[Name, Mapping[str, Any]]:
    kinds, keys = zip(*names, strict=True)
    records = await connection.fetch(sql.LOCK, kinds, keys)
    return {(record["kind"], record["key"]): record for record in records}


async def _save(connection: asyncpg.Connection, rows: Sequence[Row]) -> None:
    if rows:
        saved = [to_columns(row) for row in rows]
        await connection.execute(sql.SAVE, *([values[name] for values in saved] for name in sql.STATE))


def ref_columns(refs: Sequence[Ref]) -> tuple[list[str], list[str], list[int]]:
    return [ref.kind for ref in refs], [ref.key for ref in refs], [ref.token for ref in refs]
