"""SQLite when its disk is full or read-only, or its file is somebody else's for a while."""

import asyncio
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from pathlib import Path
from pwd import getpwnam

import pytest

from consumer.core.claim import Run
from consumer.core.errors import SettingsError, StoreUnavailable
from consumer.store import sqlite, sqlite_open
from consumer.store.grouped import GroupedStore
from consumer.store.open import open_store, system_clock
from tests.contract.stores import KIND, claim_of, row_of, run_of, success
from tests.support.leash import ROOT

KEYS = [f"key-{number}" for number in range(300)]
DAEMON = """
import asyncio, sys
from consumer.core.claim import Run
from consumer.core.row import Ref
from consumer.store.open import open_store
from tests.contract.stores import KIND, claim_of, success
from tests.integration.test_sqlite_faults import KEYS

async def work(store, key):
    answer = await store.claim(claim_of(key, owner=sys.argv[2]))
    if isinstance(answer, Run):
        assert await store.write(success(Ref(KIND, key, answer.token)))
        print(key)

async def main():
    store = await open_store(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.read()
    for start in range(0, len(KEYS), 10):
        await asyncio.gather(*(work(store, key) for key in KEYS[start : start + 10]))
    await store.close()

asyncio.run(main())
"""


async def test_two_daemons_on_one_file_share_its_jobs_and_run_each_once(sqlite_url: str) -> None:
    """By design: each waits for the other's transactions, and the claim decides."""
    daemons = [await a_daemon(sqlite_url, owner) for owner in ("us", "them")]
    ours, theirs = await asyncio.gather(*(daemon.communicate(b"go") for daemon in daemons))
    assert [daemon.returncode for daemon in daemons] == [0, 0]
    assert sorted((ours[0] + theirs[0]).decode().split()) == sorted(KEYS)


async def a_daemon(url: str, owner: str) -> Process:
    """Start it, and return once it has opened the store."""
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DAEMON, url, owner, cwd=ROOT, stdin=PIPE, stdout=PIPE
    )
    assert daemon.stdout is not None
    assert await daemon.stdout.readline() == b"ready\n"
    return daemon


async def test_a_full_disk_is_unavailable_until_there_is_room(sqlite_url: str) -> None:
    backend = await sqlite_open.open_sqlite(sqlite_url.removeprefix("sqlite:///"), system_clock, "")
    store = GroupedStore(backend)
    ref = await run_of(store, claim_of())
    await pragma(backend, "max_page_count = 20")
    result = b'"' + b"x" * 200_000 + b'"'
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="full"):
            await store.write(success(ref, result))
    assert (await row_of(store)).status == "processing"
    await pragma(backend, "max_page_count = 1000000")
    assert await store.write(success(ref, result))
    assert (await row_of(store)).result == result
    await store.close()


async def pragma(backend: sqlite.SqliteBackend, setting: str) -> None:
    await backend._in_thread(lambda: backend._connection.execute(f"PRAGMA {setting}").fetchall())


@pytest.fixture
def readable() -> Iterator[str]:
    """The path of a store that everybody may read and nobody may write, and we are nobody."""
    folder = Path(tempfile.mkdtemp(prefix="sqlite-"))
    path = folder / "jobs.sqlite3"
    asyncio.run(make(f"sqlite:///{path}"))
    path.chmod(0o444)
    folder.chmod(0o555)
    us = os.geteuid()
    if us == 0:  # root may write everywhere
        os.seteuid(getpwnam("nobody").pw_uid)
    yield str(path)
    os.seteuid(us)
    folder.chmod(0o755)
    shutil.rmtree(folder)


async def make(url: str) -> None:
    await (await open_store(url)).close()


async def test_a_file_that_may_only_be_read_is_unavailable_and_named(readable: str) -> None:
    with pytest.raises(StoreUnavailable, match=f"{readable}.*readonly"):
        await open_store(f"sqlite:///{readable}")


async def test_a_disk_that_becomes_read_only_is_unavailable_until_it_is_not(sqlite_url: str) -> None:
    backend = await sqlite_open.open_sqlite(sqlite_url.removeprefix("sqlite:///"), system_clock, "")
    ref = await run_of(store := GroupedStore(backend), claim_of())
    await pragma(backend, "query_only = on")
    for work in (store.write(success(ref)), store.probe(), store.prune(0, 1)):
        with pytest.raises(StoreUnavailable, match="readonly"):
            await work
    await pragma(backend, "query_only = off")
    assert await store.write(success(ref))
    await store.close()


async def test_a_file_on_a_network_filesystem_is_refused_before_it_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/export {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(sqlite_open, "MOUNTS", table)
    with pytest.raises(SettingsError, match="nfs4"):
        await open_store(f"sqlite:///{tmp_path}/jobs.sqlite3")
    assert not (tmp_path / "jobs.sqlite3").exists()


def size_of(url: str) -> int:
    return Path(url.removeprefix("sqlite:///")).stat().st_size


async def test_pruning_leaves_the_file_to_new_jobs(sqlite_url: str) -> None:
    """A file never shrinks, but what was pruned is used again."""
    store = await open_store(sqlite_url, clock=iter(range(10**6, 10**9, 1000)).__next__)
    sizes = []
    for _ in range(5):
        refs = await asyncio.gather(*(run_of(store, claim_of(key)) for key in KEYS))
        await asyncio.gather(*(store.write(success(ref, b'"' + b"x" * 2_000 + b'"')) for ref in refs))
        while await store.prune(0, 100):
            pass
        sizes.append(size_of(sqlite_url))
    assert await store.claim(claim_of()) == Run(1, 1)
    assert await store.find(KIND, KEYS[0]) is None
    assert sizes[-1] <= 1.5 * max(sizes[0], sizes[1])
    await store.close()
