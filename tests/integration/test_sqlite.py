"""SQLite on a real file: several processes, trouble with the file, and the loop that never waits for it."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from consumer.core.claim import Done, Run
from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.store import sqlite_open
from consumer.store.open import open_store
from tests.contract.stores import KIND, claim_of, failure, run_of, success


async def test_a_store_that_is_opened_again_knows_what_it_knew(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    await store.write(success(await run_of(store, claim_of())))
    await store.close()
    again = await open_store(sqlite_url)
    assert await again.claim(claim_of()) == Done("succeeded")
    await again.close()


async def test_several_stores_open_one_new_file_at_once_and_race_for_its_keys(sqlite_url: str) -> None:
    stores = await asyncio.gather(*(open_store(sqlite_url) for _ in range(4)))
    answers = await asyncio.gather(
        *(store.claim(claim_of(f"key-{key}", owner=str(id(store)))) for store in stores for key in range(50))
    )
    assert sum(isinstance(answer, Run) for answer in answers) == 50
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_result_survives_a_power_cut(sqlite_url: str) -> None:
    """Full synchronisation: what was answered is on the disk, and not only in its cache."""
    backend = await sqlite_open.open_sqlite(sqlite_url.removeprefix("sqlite:///"), lambda: 0, "")
    pragmas = await backend._in_thread(
        lambda: [
            backend._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")
        ]
    )
    assert pragmas == [2, "wal"]
    await backend.close()


async def test_a_file_that_another_process_holds_is_unavailable_and_then_works_again(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_open, "BUSY_SECONDS", 0.01)
    store = await open_store(sqlite_url)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.claim(claim_of())
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.probe()
    assert await store.find(KIND, "order-7") is None
    other.execute("ROLLBACK")
    other.close()
    assert await store.claim(claim_of()) == Run(1, 1)
    await store.close()


async def test_the_loop_runs_on_while_a_transaction_waits(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    claim = asyncio.create_task(store.claim(claim_of()))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not claim.done()
    other.execute("ROLLBACK")
    other.close()
    assert await claim == Run(1, 1)
    await store.close()


async def test_a_batch_that_fails_half_way_leaves_nothing_behind(sqlite_url: str) -> None:
    backend = await sqlite_open.open_sqlite(sqlite_url.removeprefix("sqlite:///"), lambda: 0, "")
    with pytest.raises(OverflowError):
        await backend.claim([claim_of("a"), claim_of("b", deadline=2**70)])
    assert await backend.find(KIND, "a") is None
    await backend.close()


async def test_a_result_that_is_no_text_fails_alone_and_its_batch_is_written(sqlite_url: str) -> None:
    store = await open_store(sqlite_url)
    refs = await asyncio.gather(*(run_of(store, claim_of(key)) for key in "abc"))
    changes = [success(refs[0]), success(refs[1], b"\xff"), success(refs[2])]
    answers = await asyncio.gather(*map(store.write, changes), return_exceptions=True)
    assert (answers[0], answers[2]) == (True, True)
    assert isinstance(answers[1], StoreRefused)
    assert await store.write(failure(refs[1]))
    await store.close()


@pytest.mark.parametrize("content", [b"this is no database, whatever its name says" * 50, None])
async def test_a_file_that_can_t_be_used_is_unavailable_and_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "folder" / "jobs.sqlite3"
    if content:
        path.parent.mkdir()
        path.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=str(path)):
        await open_store(f"sqlite:///{path}")
