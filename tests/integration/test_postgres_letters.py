"""How PostgreSQL finds a page of dead letters."""

import asyncpg

from consumer.store.open import open_store


async def test_a_page_is_read_by_its_index_without_sorting(postgres_url: str) -> None:
    await (await open_store(postgres_url)).close()
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("SET enable_seqscan = off")
    plan = await connection.fetch(
        "EXPLAIN SELECT id FROM consumer_dead_letters WHERE queue = 'default' AND state = 'dead' "
        "ORDER BY dead_at DESC, id DESC LIMIT 50"
    )
    await connection.close()
    assert "consumer_dead_letters_listed" in str(plan)
    assert "Sort" not in str(plan)
