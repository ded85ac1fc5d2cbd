"""PostgreSQL when it says no, says nothing, or is short of something."""

import asyncio
from random import Random
from urllib.parse import urlsplit

import asyncpg
import pytest

from consumer.core.claim import Run
from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.core.ports import Store
from consumer.store import sessions
from tests.contract.stores import KIND, claim_of, failure, row_of, run_of, success
from tests.integration.test_postgres import connected, lose_other_sessions, opened, until_someone_waits_for_a_lock
from tests.support.postgres import Postgres
from tests.support.proxy import Proxy
from tests.support.waiting import eventually

KEYS = [f"key-{number}" for number in range(20)]
SECRET = "s3cr3t"
UNFIT = {
    "no json": f'{{"token": {SECRET}}}'.encode(),
    "no utf-8": b'"\xff"',
    "nul": f'"{SECRET}\x00"'.encode(),
    "nothing": b"",
}


def database_of(url: str) -> str:
    return urlsplit(url).path[1:]


# One item that the database can't hold


@pytest.mark.parametrize("result", UNFIT.values(), ids=UNFIT)
async def test_a_result_that_the_database_refuses_fails_alone_and_its_batch_is_written(
    postgres_url: str, result: bytes
) -> None:
    async with opened(postgres_url) as store:
        refs = await asyncio.gather(*(run_of(store, claim_of(key)) for key in KEYS))
        changes = [success(ref, result if ref.key == "key-7" else b"1") for ref in refs]
        answers = await asyncio.gather(*map(store.write, changes), return_exceptions=True)
        refused = answers.pop(7)
        assert isinstance(refused, StoreRefused)
        assert SECRET not in str(refused)
        assert answers == [True] * 19
        assert await store.write(failure(refs[7]))


async def test_a_key_that_no_index_can_hold_is_refused_alone(postgres_url: str) -> None:
    """The longest kind and key of the longest characters, and nothing in them to compress."""
    letters = [chr(number) for number in range(0x20000, 0x2A000)]
    kind, long_key = ("".join(Random(1).choices(letters, k=length)) for length in (200, 500))
    async with opened(postgres_url) as store:
        claims = [claim_of("a"), claim_of(long_key, kind=kind), claim_of("b")]
        answers = await asyncio.gather(*map(store.claim, claims), return_exceptions=True)
        assert (answers[0], answers[2]) == (Run(1, 1), Run(1, 1))
        assert isinstance(answers[1], StoreRefused)


async def test_a_constraint_that_somebody_added_for_results_refuses_results(postgres_url: str) -> None:
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        await other.execute("ALTER TABLE consumer_jobs ADD CHECK (length(result::text) < 10)")
        refs = [await run_of(store, claim_of(key)) for key in ("large", "small")]
        changes = [success(refs[0], b'"0123456789"'), success(refs[1], b"1")]
        answers = await asyncio.gather(*map(store.write, changes), return_exceptions=True)
        assert isinstance(answers[0], StoreRefused)
        assert answers[1] is True


async def test_a_table_that_takes_no_claim_at_all_is_a_store_that_is_away(postgres_url: str) -> None:
    """Else each job that comes by would be dead-lettered for what a person did to the table."""
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        await other.execute("ALTER TABLE consumer_jobs ADD COLUMN team text NOT NULL")
        with pytest.raises(StoreUnavailable):
            await store.claim(claim_of())
        await other.execute("ALTER TABLE consumer_jobs DROP COLUMN team")
        assert await store.claim(claim_of()) == Run(1, 1)


# No answer


async def prepared(store: Store) -> None:
    """Have a claim and a result done before, so that the next ones are one exchange with the server."""
    await store.write(success(await run_of(store, claim_of("before"))))


async def test_a_result_whose_commit_was_not_heard_of_is_there_once_and_its_retry_says_so(postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy, opened(proxy.url) as store, opened(postgres_url) as direct:
        await prepared(store)
        ref = await run_of(store, claim_of())
        proxy.stall(to_server=False)
        write = asyncio.create_task(store.write(success(ref)))

        async def is_committed() -> bool:
            return (await row_of(direct)).status == "succeeded"

        await eventually(is_committed, "the server commits")
        committed = await row_of(direct)
        proxy.cut()
        with pytest.raises(StoreUnavailable):
            await write
        proxy.flow()
        assert await store.write(success(ref)) is True
        assert await row_of(direct) == committed
        async with connected(postgres_url) as other:
            assert await other.fetchval("SELECT count(*) FROM consumer_jobs WHERE key = 'order-7'") == 1


async def test_a_claim_whose_commit_was_not_heard_of_runs_when_it_is_asked_for_again(postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy, opened(proxy.url) as store, opened(postgres_url) as direct:
        await prepared(store)
        proxy.stall(to_server=False)
        claim = asyncio.create_task(store.claim(claim_of()))

        async def is_committed() -> bool:
            return await direct.find(KIND, "order-7") is not None

        await eventually(is_committed, "the server commits")
        proxy.cut()
        with pytest.raises(StoreUnavailable):
            await claim
        proxy.flow()
        assert await store.claim(claim_of()) == Run(2, 1, crashes=0)


async def test_a_statement_that_the_server_gives_up_is_unavailable_and_works_later(postgres_url: str) -> None:
    async with connected(postgres_url) as other:
        await other.execute(f"ALTER DATABASE {database_of(postgres_url)} SET statement_timeout = '500ms'")
        async with opened(postgres_url) as store:
            ref = await run_of(store, claim_of())
            async with other.transaction():
                await other.execute("SELECT FROM consumer_jobs FOR UPDATE")
                with pytest.raises(StoreUnavailable, match="statement timeout"):
                    await store.write(success(ref))
            assert await store.write(success(ref))


async def test_a_new_daemon_waits_for_a_node_that_is_read_only(postgres_url: str) -> None:
    async with connected(postgres_url) as other:
        database = database_of(postgres_url)
        await other.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
        with pytest.raises(StoreUnavailable, match="read-only"):
            async with opened(postgres_url):
                pass
        await other.execute("SET default_transaction_read_only = off")
        await other.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
        async with opened(postgres_url) as store:
            await store.probe()


async def test_of_several_hosts_the_one_that_takes_writes_is_found(postgres: Postgres, postgres_url: str) -> None:
    with Postgres() as standby:
        both = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{postgres.port}/"
        url = f"{both}{database_of(postgres_url)}?target_session_attrs=read-write"
        standby.psql(f"CREATE DATABASE {database_of(postgres_url)}")
        standby.psql("ALTER ROLE postgres SET default_transaction_read_only = on")
        async with opened(url) as store:
            assert await store.claim(claim_of()) == Run(1, 1)
        async with opened(postgres_url) as primary:
            assert await primary.find(KIND, "order-7") is not None
        with pytest.raises(StoreUnavailable, match="none of its hosts takes writes"):
            async with opened(f"{standby.url}?target_session_attrs=read-write"):
                pass


# Short of sessions


async def test_a_wait_for_sessions_that_are_all_lent_is_bounded(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LIMIT", 1)
    monkeypatch.setattr(sessions, "WAIT_SECONDS", 0.1)
    async with opened(postgres_url) as store, connected(postgres_url) as other:
        ref = await run_of(store, claim_of())
        async with other.transaction():
            await other.execute("SELECT FROM consumer_jobs FOR UPDATE")
            write = asyncio.create_task(store.write(success(ref)))
            await until_someone_waits_for_a_lock(other)
            with pytest.raises(StoreUnavailable, match="no answer in time"):
                await store.find(KIND, "order-7")
        assert await write


async def narrow_role(connection: asyncpg.Connection, url: str, limit: int) -> str:
    """The URL of a user with so many sessions; superusers have no limit."""
    await connection.execute("DROP ROLE IF EXISTS narrow")
    await connection.execute(f"CREATE ROLE narrow LOGIN CONNECTION LIMIT {limit}")
    await connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO narrow")
    return url.replace("postgres@", "narrow@")


async def test_a_server_with_one_session_left_for_us_is_enough_for_everything(postgres_url: str) -> None:
    async with opened(postgres_url), connected(postgres_url) as other:
        async with opened(await narrow_role(other, postgres_url, limit=1)) as store:
            refs = await asyncio.gather(*(run_of(store, claim_of(key)) for key in KEYS))
            finds = (store.find(KIND, key) for key in KEYS)
            await asyncio.gather(store.probe(), store.renew(refs, 1_000), *finds)
            assert await asyncio.gather(*(store.write(success(ref)) for ref in refs)) == [True] * 20
        await other.execute("DROP OWNED BY narrow")


async def test_a_server_without_a_session_for_us_is_unavailable_until_it_has_one(postgres_url: str) -> None:
    async with opened(postgres_url), connected(postgres_url) as other:
        narrow = await narrow_role(other, postgres_url, limit=1)
        taker = await asyncpg.connect(narrow)
        with pytest.raises(StoreUnavailable, match="too many connections"):
            async with opened(narrow):
                pass
        await taker.close()
        await lose_other_sessions(other)
        async with opened(narrow) as store:
            await store.probe()
        await other.execute("DROP OWNED BY narrow")


async def test_a_server_whose_connections_are_all_taken_is_waited_for() -> None:
    with Postgres(options=["max_connections=6", "superuser_reserved_connections=0"]) as server:
        async with opened(server.url) as store:
            ref = await run_of(store, claim_of())
            others = await fill(server.url)
            results = await asyncio.gather(store.write(success(ref)), *(store.find(KIND, "order-7") for _ in range(9)))
            assert results[0] is True
            for other in others:
                await other.close()


async def fill(url: str) -> list[asyncpg.Connection]:
    taken: list[asyncpg.Connection] = []
    try:
        while True:
            taken.append(await asyncpg.connect(url))
    except asyncpg.TooManyConnectionsError:
        return taken
