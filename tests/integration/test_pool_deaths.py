"""Children that die: whom it is charged to, and how soon others take over."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from consumer.core.outcome import Crashed, Failed, Interrupted, Succeeded
from consumer.worker.outlet import Outlet
from schemas.codes import Code
from tests.support.pools import CONFIG, gone, pool, state, zygote_of
from tests.support.waiting import eventually, until

MEMORY_LIMIT = 600 * 1024 * 1024


@pytest.mark.parametrize(
    ("kind", "payload", "how"),
    [
        ("sigkill", None, "was killed by SIGKILL"),
        ("segfault", None, "was killed by SIGSEGV"),
        ("os_exit", 0, "exited with code 0"),
        ("os_exit", 3, "exited with code 3"),
        ("closes_everything", None, ""),
    ],
)
async def test_a_job_that_ends_its_child_crashes_alone(kind: str, payload: int | None, how: str) -> None:
    async with pool() as bench:
        neighbour = bench.begin("sleep", {"seconds": 0.3})
        await bench.until(running=1)
        guilty = bench.begin(kind, payload)
        innocent = [bench.begin("sleep", {"seconds": 0}) for _ in range(3)]
        outcome = await guilty
        assert isinstance(outcome, Crashed)
        assert outcome.fault.code is Code.WORKER_CRASHED
        assert how in outcome.fault.message
        assert outcome.usage.started_at > 0
        assert outcome.usage.peak_memory > 1_000_000
        assert all(isinstance(each, Succeeded) for each in await asyncio.gather(neighbour, *innocent))
        await bench.until_full()
        assert bench.exits == ["crash"]


async def test_a_crash_is_charged_to_the_running_job_and_the_one_behind_it_goes_to_another_child() -> None:
    async with pool(processes=1) as bench:
        running = bench.begin("sleep", {"seconds": 30})
        await bench.until(running=1)
        [pid] = bench.pool.pids
        queued = bench.begin("sleep", {"seconds": 0})
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        assert isinstance(await running, Crashed)
        outcome = await queued
        assert isinstance(outcome, Succeeded)
        assert int(outcome.result) != pid


async def test_a_job_that_was_handed_to_a_child_and_never_began_is_not_charged() -> None:
    async with pool(processes=1) as bench:
        [pid] = bench.pool.pids
        os.kill(pid, signal.SIGSTOP)
        until(lambda: state(pid) == "T", "a stopped child")
        jobs = [bench.begin("sleep", {"seconds": 0}) for _ in range(2)]
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*jobs))


async def test_a_job_whose_child_was_killed_between_taking_its_ticket_and_beginning_is_not_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waits there for its long body, which we hold back."""
    async with pool(processes=1) as bench:
        [pid] = bench.pool.pids
        with monkeypatch.context() as held_back:
            held_back.setattr(Outlet, "write", lambda *_: None)
            waiting = bench.begin("echo", "x" * 100_000)
            await bench.until(running=1)
            os.kill(pid, signal.SIGKILL)
        assert isinstance(await waiting, Succeeded)
        assert bench.exits == ["crash"]


async def test_a_job_that_ends_each_child_before_it_begins_is_charged_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Outlet, "write", lambda *_: None)
    async with pool(processes=1) as bench:
        waiting = bench.begin("echo", "x" * 100_000)
        for _ in range(4):
            assert not waiting.done()
            await bench.until(running=1)
            [pid] = bench.pool.pids
            os.kill(pid, signal.SIGKILL)
            await bench.until_gone(pid)
        assert isinstance(await waiting, Crashed)


async def test_the_death_of_a_child_that_was_started_late_is_noticed_at_once() -> None:
    async with pool() as bench:
        long = bench.begin("sleep", {"seconds": 30})
        await bench.until(running=1)
        for _ in range(3):  # each of these but the first runs in a replacement
            async with asyncio.timeout(5):
                assert isinstance(await bench.run("sigkill"), Crashed)
        assert not long.done()


async def test_one_killed_child_costs_one_attempt_however_long_the_queue_is() -> None:
    async with pool() as bench:
        jobs = [bench.begin("sleep", {"seconds": 0.005}) for _ in range(200)]
        await bench.until(running=2)
        os.kill(bench.pool.pids[0], signal.SIGKILL)
        async with asyncio.timeout(10):
            outcomes = await asyncio.gather(*jobs)
    assert sum(isinstance(outcome, Succeeded) for outcome in outcomes) >= 199
    assert all(isinstance(outcome, (Succeeded, Crashed)) for outcome in outcomes)


@pytest.mark.parametrize(
    ("kind", "payload", "error", "text"),
    [
        ("sys_exit", 3, "SystemExit", "3"),
        ("keyboard_interrupt", None, "KeyboardInterrupt", ""),
        ("unpicklable", None, "results.Custom", "1 and 2"),
        ("unspeakable", None, "results.Unspeakable", "(its text can't be had: RuntimeError)"),
        ("validation_error", "1234x", "RuntimeError", "the account is odd"),
    ],
)
async def test_an_odd_error_is_an_ordinary_failure_that_leaves_child_and_neighbour_alone(
    kind: str, payload: object, error: str, text: str
) -> None:
    async with pool() as bench:
        neighbour = bench.begin("sleep", {"seconds": 0.2})
        outcome = await bench.run(kind, payload)
        assert isinstance(outcome, Failed)
        assert (outcome.fault.error_type, outcome.fault.message) == (error, text)
        assert outcome.retryable is None
        assert kind in outcome.fault.traceback
        assert "1234x" not in outcome.fault.traceback
        assert isinstance(await neighbour, Succeeded)
        assert bench.exits == []


async def test_an_error_of_ten_megabytes_is_cut_to_what_any_database_takes() -> None:
    async with pool(processes=1) as bench:
        outcome = await bench.run("long_error")
    assert isinstance(outcome, Failed)
    assert len(outcome.fault.message) < 2_100
    assert len(outcome.fault.traceback) < 8_100
    assert outcome.fault.message.startswith("\\ud800\\0xxx")


@pytest.mark.parametrize("kind", ["memory_hog", "small_hog", "memory_error"])
async def test_a_job_without_memory_is_reported_and_its_child_replaced(kind: str) -> None:
    async with pool(memory_limit=MEMORY_LIMIT) as bench:
        neighbour = bench.begin("sleep", {"seconds": 0.2})
        async with asyncio.timeout(20):
            outcome = await bench.run(kind)
        assert isinstance(outcome, Crashed)
        assert outcome.fault.code is Code.OUT_OF_MEMORY
        assert isinstance(await neighbour, Succeeded)
        await bench.until_full()
        assert await bench.result("echo", 1) == 1
        assert bench.exits == ["out_of_memory"]


async def test_what_a_dead_child_had_started_dies_too(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    async with pool() as bench:
        async with asyncio.timeout(5):
            assert isinstance(await bench.run("grandchild", str(mark)), Crashed)
        await gone([int(mark.read_text())])


async def test_a_job_that_forks_gives_one_result() -> None:
    async with pool(processes=1) as bench:
        [pid] = bench.pool.pids
        assert [await bench.result("forks") for _ in range(3)] == ["done"] * 3
        for what in ("has no memory", "loses its files"):
            assert await bench.result("forks_a_copy_that", what) == "done"
        assert await bench.result("echo", 1) == 1
        assert (bench.exits, bench.pool.pids) == ([], [pid])


async def test_what_a_job_starts_ends_by_the_signals_that_any_process_ends_by() -> None:
    async with pool(processes=1) as bench:
        assert await bench.result("ends_its_helpers", seconds=5) == [-signal.SIGTERM, -signal.SIGINT]


async def test_the_death_of_the_zygote_charges_nobody_and_a_new_one_takes_over() -> None:
    async with pool() as bench:
        running = [bench.begin("sleep", {"seconds": 30}) for _ in range(2)]
        await bench.until(running=2)
        queued = [bench.begin("echo", number) for number in range(2)]
        pids = bench.pool.pids
        os.kill(zygote_of(pids[0]), signal.SIGKILL)
        assert await asyncio.gather(*running) == [Interrupted("zygote died")] * 2
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*queued))
        await gone(pids)
        await bench.until_full()


async def test_children_that_cant_start_any_more_make_the_pool_unhealthy_and_cost_no_job_anything(
    tmp_path: Path,
) -> None:
    module = tmp_path / "deployed.py"
    good = "from consumer import job\n@job('one')\ndef one(payload: int) -> int:\n    return payload\n"
    module.write_text(good)
    async with pool(modules=("deployed",), path=(str(tmp_path),)) as bench:
        assert await bench.result("one", 1) == 1
        module.write_text("import nowhere\n")
        os.kill(zygote_of(bench.pool.pids[0]), signal.SIGKILL)

        async def unhealthy() -> bool:
            return not bench.pool.healthy

        await eventually(unhealthy, "an unhealthy pool")
        waiting = bench.begin("one", 2)
        await asyncio.sleep(0)
        assert not waiting.done()
        module.write_text(good)
        assert await waiting == Succeeded(b"2", (await waiting).usage)  # type: ignore[union-attr]
        assert bench.pool.healthy


async def test_a_replacement_needs_no_source_file(tmp_path: Path) -> None:
    module = tmp_path / "vanishing.py"
    module.write_text("from consumer import job\n@job('one')\ndef one(payload: int) -> int:\n    return payload\n")
    async with pool(modules=("vanishing", "deadly"), path=(str(tmp_path), *CONFIG.path)) as bench:
        module.unlink()
        await bench.run("sigkill")
        await bench.run("sigkill")
        assert await bench.result("one", 1) == 1
