"""What a job can leave behind in its child: the next job there doesn't notice, or another child runs it."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consumer.core.outcome import Crashed, Failed, Interrupted, Succeeded
from consumer.worker.wire import Type, head
from tests.support.pools import CONFIG, JOBS, gone, pool, zygote_of
from tests.support.waiting import until

MODULES = (*CONFIG.modules, "leavers")


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test's pool started, down to a job's own programs, carries its mark, and is gone when the pool is."""
    monkeypatch.setenv("STARTED_BY", str(tmp_path))
    yield
    mark = f"STARTED_BY={tmp_path}".encode()
    assert [entry.name for entry in Path("/proc").glob("[0-9]*") if mark in environment_of(entry)] == []


def environment_of(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.mark.parametrize(
    "what",
    ["process_wide", "signals", "interpreter", "stdout", "output_for_a_while", "dead_process", "short_thread"],
)
async def test_what_a_job_changed_is_put_back_before_the_next_one(what: str) -> None:
    async with pool(processes=1, modules=MODULES) as bench:
        before = await bench.result("surroundings")
        pids = [await bench.result("changes", what) for _ in range(2)]
        assert await bench.result("surroundings") == before
        assert pids[0] == pids[1]
        assert bench.exits == []


async def test_what_a_job_puts_in_place_of_the_librarys_functions_is_nothing_that_we_call() -> None:
    async with pool(processes=1, modules=MODULES) as bench:
        pid = await bench.result("changes", "library")
        assert await bench.result("echo", 1) == 1
        failed = await bench.run("always_fails")
        assert isinstance(failed, Failed)
        assert failed.fault.message == "it always fails"
        assert failed.usage.started_at > 0
        assert (bench.exits, bench.pool.pids) == ([], [pid])


@pytest.mark.parametrize(
    "what",
    [
        "thread",
        "process",
        "daemon",
        "limits",
        "nice",
        "closed_input",
        "ticket_socket",
        "replaced_ticket_socket",
        "replaced_output",
    ],
)
async def test_a_child_that_cant_be_mended_is_replaced_and_no_job_pays_for_it(what: str) -> None:
    async with pool(processes=1, modules=MODULES, kill_grace=0.4) as bench:
        before = await bench.result("surroundings")
        damaging = bench.begin("changes", what)
        behind = bench.begin("surroundings")
        pid = int((await succeeded(damaging)).result)
        async with asyncio.timeout(15):
            assert await behind == Succeeded(before_text(before), (await succeeded(behind)).usage)
        await gone([pid])
        await bench.until_full()
        assert bench.exits == ["damaged"]


async def succeeded(running: "asyncio.Task[Any]") -> Succeeded:
    outcome = await running
    assert isinstance(outcome, Succeeded), outcome
    return outcome


def before_text(before: dict[str, Any]) -> bytes:
    import json

    return json.dumps(before, separators=(",", ":"), ensure_ascii=False).encode()


async def test_a_job_that_closes_the_way_of_its_own_report_pays_for_it_alone() -> None:
    async with pool(processes=1, modules=MODULES) as bench:
        guilty, behind = bench.begin("changes", "report_socket"), bench.begin("echo", 1)
        assert isinstance(await guilty, Crashed)
        assert isinstance(await behind, Succeeded)


FORGED_FAILURE = b'{"code":"rejected","type":"","message":"","traceback":"","types":[],"usage":["","","",""]}'


async def test_who_writes_nonsense_into_the_way_of_reports_is_charged_and_the_child_ends() -> None:
    forged = [
        b"what C code prints into the first descriptor it finds",
        head(Type.LEAVING, 0, b"\xff"),
        head(Type.FOLLOW_UPS, 5, b"", 9) + b"[[1,2,3]]",
        head(Type.FAILED, 7, FORGED_FAILURE),
        head(Type.FAILED, 9, b"[" * 100_000),
    ]
    async with pool(processes=1, modules=MODULES) as bench:
        for text in forged:
            guilty = bench.begin("writes_into_its_reports", text.decode("latin-1"))
            behind = bench.begin("echo", 1)
            async with asyncio.timeout(10):
                outcome = await guilty
                assert isinstance(outcome, Crashed), text
                assert outcome.fault.message == "the child sent nonsense to the daemon while it ran the job"
                assert isinstance(await behind, Succeeded)
        assert bench.exits == ["crash"] * len(forged)


async def test_a_child_that_says_it_leaves_does_so_though_it_was_a_job_that_said_it() -> None:
    async with pool(processes=1, modules=MODULES) as bench:
        pids = bench.pool.pids
        await bench.result("writes_into_its_reports", head(Type.LEAVING, 0, b"nothing").decode("latin-1"))
        await gone(pids)
        assert await bench.result("echo", 1) == 1
        assert bench.exits == ["damaged"]


@pytest.mark.parametrize("kind", ["executes", "aborts"])
async def test_a_job_that_turns_its_child_into_something_else_crashes_alone(kind: str) -> None:
    async with pool(modules=MODULES) as bench:
        neighbour = bench.begin("sleep", {"seconds": 0.2})
        outcome = await bench.run(kind)
        assert isinstance(outcome, Crashed)
        assert isinstance(await neighbour, Succeeded)
        await bench.until_full()
        assert bench.exits == ["crash"]


async def test_a_leak_of_descriptors_ends_the_child_before_it_fails_a_job() -> None:
    async with pool(processes=1, modules=MODULES, open_files=300) as bench:
        assert isinstance(await bench.run("changes", "leaked"), Succeeded)
        await bench.until_left("recycle")
        assert await bench.result("opens", 100) == 100


async def test_threads_and_processes_may_stay_where_that_is_wanted() -> None:
    async with pool(processes=1, modules=MODULES, keep_leftovers=True) as bench:
        pids = [await bench.result("changes", what) for what in ("thread", "process", "thread")]
        assert len({*pids}) == 1
        around = await bench.result("surroundings")
        assert around["threads"] == 3
        assert len(around["children"]) == 1
    await gone([*map(int, around["children"])])


async def test_a_process_that_left_the_group_of_its_child_dies_with_it() -> None:
    async with pool(processes=1, modules=MODULES, keep_leftovers=True) as bench:
        await bench.result("changes", "daemon")
        [stray] = map(int, (await bench.result("surroundings"))["children"])
        until(lambda: os.getpgid(stray) == stray, "it leads a group of its own")
        assert isinstance(await bench.run("sigkill"), Crashed)
        await gone([stray])


async def test_who_kills_the_zygote_is_found_and_nobody_else_is_charged() -> None:
    async with pool(modules=MODULES) as bench:
        other = bench.begin("sleep", {"seconds": 30}, key="other")
        await bench.until(running=1)
        guilty = bench.begin("kills_zygote")
        assert await guilty == Interrupted("zygote died")
        assert await other == Interrupted("zygote died")
        again, beside = bench.begin("kills_zygote"), bench.begin("sleep", {"seconds": 0}, key="other")
        outcome = await again
        assert isinstance(outcome, Crashed)
        assert "lost the process that all children come from" in outcome.fault.message
        assert isinstance(await beside, Succeeded)
        await bench.until_full()


async def test_a_ticket_that_a_job_took_away_is_charged_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its child waits for ever; the job that lost it runs elsewhere."""
    monkeypatch.setattr("consumer.worker.vigil.EVERY", 0.05)
    async with pool(processes=1, modules=MODULES) as bench:
        thief = bench.begin("steals_ticket")
        await bench.until(running=1)
        robbed = bench.begin("whoami", {})
        assert isinstance(await thief, Succeeded)
        async with asyncio.timeout(10):
            assert isinstance(await robbed, Succeeded)
        assert bench.exits == ["stopped"]


OF_A_PROGRAM = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
socket.setdefaulttimeout(0.01)
"""


async def test_what_a_library_sets_up_at_its_import_is_not_for_us(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(OF_A_PROGRAM)
    (tmp_path / "shop.py").write_text("import library\nfrom leavers import *\nfrom deadly import *")
    async with pool(processes=1, modules=("shop",), path=(str(tmp_path), str(JOBS))) as bench:
        assert await bench.result("waits_for_its_sockets") == [True, True]
        os.kill(zygote_of(bench.pool.pids[0]), signal.SIGTERM)
        async with asyncio.timeout(10):
            assert isinstance(await bench.run("sigkill"), Crashed)
            assert await bench.result("opens", 1) == 1
        assert bench.exits == ["crash"]
