"""Sweeping a PostgreSQL that others use at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

from consumer.core.claim import Run
from consumer.core.ports import Store
from consumer.core.row import Ref, Row, Status
from consumer.store.statements import SWEEP_LOCK
from tests.contract.stores import KIND, claim_of, retry, row_of, run_of, success
from tests.integration.test_postgres import connected, opened

KEYS = [f"key-{number}" for number in range(60)]
DAY = 86_400_000
KINDS = frozenset({KIND})
OLD_JOBS = f"""
INSERT INTO consumer_jobs (kind, key, status, token, payload, first_seen_at, finished_at)
SELECT '{KIND}', format('%s-%s', status, number), status, 0, '{{}}', 1, 1
FROM generate_series(1, $1::int) AS number CROSS JOIN unnest($2::text[]) AS status
"""
NEW_JOBS = OLD_JOBS.replace("1, 1", f"{DAY * 365_000}, {DAY * 365_000}").replace("%s-%s", "new-%s-%s")
SCANS = "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'consumer_jobs'"


async def test_a_finished_row_that_somebody_holds_is_passed_over_and_holds_up_nobody(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        await other.execute(OLD_JOBS, 3, ["succeeded"])
        async with other.transaction():
            await other.execute("SELECT FROM consumer_jobs WHERE key = 'succeeded-2' FOR UPDATE")
            assert await store.prune(DAY, 100) == 2
        assert await store.prune(DAY, 100) == 1


async def test_of_replicas_that_sweep_at_one_moment_all_but_one_find_nothing_to_do(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        await other.execute(OLD_JOBS, 1, ["succeeded", "pending"])
        async with other.transaction():
            await other.execute("SELECT pg_advisory_xact_lock($1)", SWEEP_LOCK)
            assert await store.prune(DAY, 100) == 0
            assert await store.overdue(KINDS, DAY, 100) == []
        assert await store.prune(DAY, 100) == 1
        assert len(await store.overdue(KINDS, DAY, 100)) == 1


@asynccontextmanager
async def replicas_of(url: str, count: int) -> AsyncIterator[list[Store]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(opened(url)) for _ in range(count)]


async def test_eight_replicas_prune_each_row_once(postgres_url: str) -> None:
    async with replicas_of(postgres_url, 8) as replicas, connected(postgres_url) as other:
        await other.execute(OLD_JOBS, 2_000, ["succeeded"])
        counts = [await asyncio.gather(*(store.prune(DAY, 100) for store in replicas)) for _ in range(20)]
        assert all(count in {0, 100} for round_ in counts for count in round_)
        left = await other.fetchval("SELECT count(*) FROM consumer_jobs")
        assert sum(map(sum, counts)) == 2_000 - left
        assert left < 2_000


async def test_a_sweep_reads_what_it_finds_and_not_the_whole_table(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        await other.execute(NEW_JOBS, 5_000, ["succeeded", "failed"])
        await other.execute(NEW_JOBS, 500, ["pending"])
        await other.execute(OLD_JOBS, 10, ["succeeded", "pending", "retrying"])
        await other.execute("ANALYZE consumer_jobs")
        before = await other.fetchval("SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'consumer_jobs'")
        for _ in range(8):
            await store.stuck(DAY)
            rows = await store.overdue(KINDS, DAY, 5)
            await store.swept([Ref(row.kind, row.key, row.token) for row in rows])
            await store.prune(DAY, 5)
        await other.execute("SELECT pg_stat_force_next_flush()")
    async with connected(postgres_url) as other:
        scans = await other.fetchrow(SCANS)
        assert scans["seq_tup_read"] == before
        assert scans["idx_tup_fetch"] < 2_000


async def test_replicas_that_claim_write_renew_and_sweep_the_same_rows_never_deadlock(postgres_url: str) -> None:
    async with replicas_of(postgres_url, 4) as replicas:
        for key in KEYS:
            await replicas[0].submit(Row(KIND, key, Status.PENDING, payload=b"{}"))
        await asyncio.gather(*(work(store, Random(number)) for number, store in enumerate(replicas)))
        rows = await asyncio.gather(*(row_of(replicas[0], key) for key in KEYS))
        assert {row.status for row in rows} == {"succeeded"}
    async with connected(postgres_url) as connection:
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert await connection.fetchval(deadlocks) == 0


async def work(store: Store, random: Random) -> None:
    """Each in an order of its own."""
    held: list[Ref] = []

    async def run(key: str) -> None:
        answer = await store.claim(claim_of(key, owner=str(id(store))))
        if isinstance(answer, Run):
            held.append(ref := Ref(KIND, key, answer.token))
            assert await store.write(retry(ref))
            await store.write(success(await run_of(store, claim_of(key, owner=str(id(store)), attempt=2))))

    async def sweep() -> None:
        for _ in range(10):
            rows = list(await store.overdue(KINDS, -1_000, 50))
            random.shuffle(rows)
            await store.swept([Ref(row.kind, row.key, row.token) for row in rows])
            await store.renew(random.sample(held, len(held)), 60_000)
            await store.prune(DAY, 50)

    await asyncio.gather(sweep(), *map(run, random.sample(KEYS, len(KEYS))))
