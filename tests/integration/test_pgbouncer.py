"""Behind pgbouncer in transaction mode, where each statement may go to another session of the server."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Iterator

import pytest

from consumer.core.claim import Claim, Run
from consumer.core.errors import ConsumerError
from consumer.core.ports import Store
from consumer.core.row import Ref
from consumer.store.open import open_store
from tests.contract.stores import KIND, claim_of, retry, run_of, success
from tests.integration.test_postgres import opened
from tests.support.leash import ROOT
from tests.support.pgbouncer import SERVER_SESSIONS, PgBouncer
from tests.support.postgres import Postgres

KEYS = [f"key-{number}" for number in range(200)]
ANOTHER_DAEMON = """
import asyncio, sys
from consumer.store.open import open_store
from tests.contract.stores import claim_of, run_of

async def main():
    store = await open_store(sys.argv[1])
    await asyncio.gather(*(run_of(store, claim_of(f"theirs-{number}")) for number in range(20)))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def bouncer(postgres: Postgres) -> Iterator[PgBouncer]:
    with PgBouncer(postgres) as bouncer:
        yield bouncer


async def test_four_replicas_race_without_prepared_statements_and_each_key_runs_once(
    bouncer: PgBouncer, postgres_url: str
) -> None:
    url = bouncer.before(postgres_url)
    stores = await asyncio.gather(*(open_store(url, prepared_statements=False) for _ in range(4)))
    assert len(stores) > SERVER_SESSIONS
    answers = await asyncio.gather(*(race(store, f"pod-{number}") for number, store in enumerate(stores)))
    assert sum(answer == Run(1, 1) for replica in answers for answer in replica) == len(KEYS)
    rows = await asyncio.gather(*(stores[0].find(KIND, key) for key in KEYS))
    assert {row and row.status for row in rows} == {"succeeded"}
    await asyncio.gather(*(store.close() for store in stores))


async def race(store: Store, owner: str) -> list[Claim]:
    """Claim every key in an order of one's own; write a retry and then a result of those that one gets."""

    async def run(key: str) -> Claim:
        answer = await store.claim(claim_of(key, owner=owner))
        if isinstance(answer, Run):
            ref = Ref(KIND, key, answer.token)
            assert await store.renew([ref], 60_000) == frozenset()
            assert await store.write(retry(ref))
            assert await store.write(success(await run_of(store, claim_of(key, owner=owner, attempt=2))))
            assert await store.prune(3_600_000, 100) == 0
        return answer

    return await asyncio.gather(*map(run, sorted(KEYS, key=lambda key: hash((owner, key)))))


async def test_prepared_statements_end_in_the_sentence_that_names_the_setting(
    bouncer: PgBouncer, postgres_url: str
) -> None:
    """A second daemon, whose statements have the same names, is enough to notice it."""
    url = bouncer.before(postgres_url)
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", ANOTHER_DAEMON, url, cwd=ROOT, stderr=DEVNULL)
    await other.wait()

    async def replica(owner: str) -> None:
        async with opened(url) as store:
            await race(store, owner)

    ends = await asyncio.gather(*(replica(f"pod-{number}") for number in range(4)), return_exceptions=True)
    assert any(isinstance(end, ConsumerError) and "set prepared_statements = false" in str(end) for end in ends), ends
