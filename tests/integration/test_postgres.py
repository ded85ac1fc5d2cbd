"""PostgreSQL where it differs from the others: many replicas, lost sessions, failovers, restricted users."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from consumer.core.claim import Claim, ClaimRequest, Run
from consumer.core.errors import SettingsError, StoreUnavailable
from consumer.core.ports import Store
from consumer.core.row import Change, Ref
from consumer.store import postgres_open, sessions
from consumer.store.open import open_store
from tests.contract.stores import KIND, claim_of, failure, release, retry, run_of, success
from tests.support.postgres import Postgres
from tests.support.waiting import eventually

CHANGES: list[Callable[[Ref], Change]] = [success, retry, failure, release]
WAITING_FOR_A_LOCK = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
DEADLOCK_ONCE = """
CREATE SEQUENCE updates;
CREATE FUNCTION deadlock_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('updates') = 1 THEN
        RAISE EXCEPTION 'deadlock detected' USING ERRCODE = 'deadlock_detected';
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER deadlock_once BEFORE UPDATE ON consumer_jobs FOR EACH ROW EXECUTE FUNCTION deadlock_once();
"""


@asynccontextmanager
async def opened(url: str, *, prepared_statements: bool = True) -> AsyncIterator[Store]:
    store = await open_store(url, prepared_statements=prepared_statements)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def lose_other_sessions(connection: asyncpg.Connection) -> None:
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    await connection.execute(f"SELECT pg_terminate_backend(pid) {others}")

    async def are_gone() -> bool:
        return not await connection.fetchval(f"SELECT count(*) {others}")

    await eventually(are_gone, "the sessions end")


async def test_eight_starters_migrate_one_empty_database(postgres_url: str) -> None:
    stores = await asyncio.gather(*(open_store(postgres_url) for _ in range(8)))
    await asyncio.gather(*(store.probe() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))
    async with connected(postgres_url) as connection:
        names = await connection.fetchval("SELECT array_agg(name ORDER BY name) FROM consumer_migrations")
        assert names == sorted(
            script.name for script in Path(postgres_open.__file__).with_name("migrations").glob("*.postgres.sql")
        )


async def test_a_migration_may_take_longer_than_any_other_statement(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_open, "COMMAND_SECONDS", 0.5)
    monkeypatch.setattr(postgres_open, "scripts", lambda _: [("slow", "SELECT pg_sleep(0.7)")])
    async with opened(postgres_url), connected(postgres_url) as connection:
        assert await connection.fetchval("SELECT name FROM consumer_migrations") == "slow"


async def test_a_migration_does_not_let_others_wait_behind_it_for_a_lock(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await open_store(postgres_url)).close()
    monkeypatch.setattr(postgres_open, "LOCK_MS", 10)
    monkeypatch.setattr(postgres_open, "scripts", lambda _: [("wide", "ALTER TABLE consumer_jobs ADD COLUMN wide int")])
    async with connected(postgres_url) as other, other.transaction():
        await other.execute("SELECT FROM consumer_jobs")
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            await open_store(postgres_url)
    async with opened(postgres_url) as store:
        assert await run_of(store, claim_of())


async def test_four_replicas_race_for_two_hundred_keys_and_each_runs_once(postgres_url: str) -> None:
    stores = await asyncio.gather(*(open_store(postgres_url) for _ in range(4)))

    async def work(number: int, store: Store) -> list[Claim]:
        """Each replica meets the keys in an order of its own, and writes while the others claim."""
        keys = sorted(range(200), key=lambda key: hash((number, key)))
        return await asyncio.gather(*(run(store, claim_of(f"key-{key}", owner=f"pod-{number}")) for key in keys))

    async def run(store: Store, request: ClaimRequest) -> Claim:
        answer = await store.claim(request)
        if isinstance(answer, Run):
            ref = Ref(request.kind, request.key, answer.token)
            assert await store.write(CHANGES[hash(ref.key) % 4](ref) if answer.token == 1 else success(ref))
        return answer

    answers = await asyncio.gather(*(work(number, store) for number, store in enumerate(stores)))
    first_runs = [answer for replica in answers for answer in replica if answer == Run(1, 1)]
    assert len(first_runs) == 200
    async with connected(postgres_url) as connection:
        deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        assert await connection.fetchval(deadlocks) == 0
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_session_that_is_killed_is_unavailable_once_and_then_replaced(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        ref = await run_of(store, claim_of())
        async with other.transaction():
            await other.execute("SELECT FROM consumer_jobs FOR UPDATE")
            write = asyncio.create_task(store.write(success(ref)))
            await until_someone_waits_for_a_lock(other)
            await other.execute(f"SELECT pg_terminate_backend(pid) {WAITING_FOR_A_LOCK}")
            with pytest.raises(StoreUnavailable):
                await write
        assert await store.write(success(ref))


async def test_idle_sessions_that_were_killed_cost_at_most_one_error_together(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        await asyncio.gather(*(store.probe() for _ in range(sessions.LIMIT)))
        await lose_other_sessions(other)
        with suppress(StoreUnavailable):
            await store.probe()
        assert await store.claim(claim_of()) == Run(1, 1)


async def test_a_node_that_became_read_only_is_left_with_all_its_sessions(postgres_url: str) -> None:
    """A failover as sessions see it: the server goes on answering, and refuses every write."""
    database = urlsplit(postgres_url).path[1:]
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        await lose_other_sessions(other)
        await other.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        with suppress(StoreUnavailable):
            await store.find(KIND, "order-7")
        await asyncio.gather(*(store.find(KIND, "order-7") for _ in range(sessions.LIMIT)))
        await other.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
        # Nobody ends these sessions for us, and reading in them works.
        with pytest.raises(StoreUnavailable, match="read-only"):
            await store.probe()
        assert await store.claim(claim_of()) == Run(1, 1)


async def test_a_server_that_is_stopped_and_started_is_used_again() -> None:
    with Postgres() as server:
        async with opened(server.url) as store:
            ref = await run_of(store, claim_of())
            server.stop()
            with pytest.raises(StoreUnavailable):
                await store.write(success(ref))
            with pytest.raises(StoreUnavailable, match="127"):
                await store.claim(claim_of("other"))
            server.start()
            assert await store.write(success(ref))


async def test_a_server_that_is_silent_is_unavailable_after_a_bounded_time(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_open, "COMMAND_SECONDS", 0.5)
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        ref = await run_of(store, claim_of())
        async with other.transaction():
            await other.execute("SELECT FROM consumer_jobs FOR UPDATE")
            with pytest.raises(StoreUnavailable, match="no answer in time"):
                await store.write(success(ref))
        assert await store.write(success(ref))


async def test_a_batch_that_the_server_undoes_to_break_a_deadlock_is_done_again(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        ref = await run_of(store, claim_of())
        await other.execute(DEADLOCK_ONCE)
        assert await store.write(success(ref))
        assert await other.fetchval("SELECT last_value FROM updates") == 2


async def test_a_user_who_may_not_create_tables_can_start_where_they_are(postgres_url: str) -> None:
    await (await open_store(postgres_url)).close()
    async with connected(postgres_url) as connection:
        await connection.execute("DROP ROLE IF EXISTS plain")
        await connection.execute("CREATE ROLE plain LOGIN")
        await connection.execute("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO plain")
        async with opened(postgres_url.replace("postgres@", "plain@")) as store:
            assert await store.write(success(await run_of(store, claim_of())))
        await connection.execute("DROP OWNED BY plain")


@pytest.mark.parametrize(("user", "database"), [("nobody:s3cr3t", None), ("postgres", "nowhere"), ("poor", None)])
async def test_what_waiting_can_t_cure_is_a_settings_error_that_says_where(
    postgres_url: str, user: str, database: str | None
) -> None:
    async with connected(postgres_url) as connection:
        await connection.execute("DROP ROLE IF EXISTS poor")
        await connection.execute("CREATE ROLE poor LOGIN")
    parts = urlsplit(postgres_url)
    place = f"{parts.hostname}:{parts.port}/{database or parts.path[1:]}"
    with pytest.raises(SettingsError) as caught:
        await open_store(f"postgresql://{user}@{place}")
    assert place in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


async def test_everything_works_without_prepared_statements(postgres_url: str) -> None:
    async with opened(postgres_url, prepared_statements=False) as store:
        await store.write(retry(await run_of(store, claim_of())))
        await store.write(success(await run_of(store, claim_of(attempt=2))))
        row = await store.find(KIND, "order-7")
        assert row is not None
        assert row.result == b'{"sent":true}'


async def test_a_claim_reaches_its_rows_by_the_primary_key_even_when_planned_on_an_empty_table(
    postgres_url: str,
) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        for batch in range(10):
            keys = [f"key-{batch}-{number}" for number in range(50)]
            refs = await asyncio.gather(*(run_of(store, claim_of(key)) for key in keys))
            await asyncio.gather(*(store.write(retry(ref)) for ref in refs))
            refs = await asyncio.gather(*(run_of(store, claim_of(key, attempt=2)) for key in keys))
            await store.renew(refs, 1000)
            await asyncio.gather(*(store.write(success(ref)) for ref in refs))
        await other.execute("SELECT pg_stat_force_next_flush()")
    async with connected(postgres_url) as other:
        scans = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'consumer_jobs'"
        assert await other.fetchval(scans) == 0


async def until_someone_waits_for_a_lock(connection: asyncpg.Connection) -> None:
    async def waits() -> bool:
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        return bool(await connection.fetchval(f"SELECT count(*) {WAITING_FOR_A_LOCK}"))

    await eventually(waits, "a session waits for a lock")
