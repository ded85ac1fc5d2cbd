"""How jobs, children and the pool end: timeouts, drains, signals, and the death of the daemon itself."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from consumer.core.errors import JobModulesError
from consumer.core.outcome import Crashed, Interrupted, Succeeded, TimedOut
from consumer.worker.catalogue import Sort
from consumer.worker.config import PoolConfig
from consumer.worker.pool import Pool
from schemas.codes import Code
from tests.support.leash import ROOT, descendants
from tests.support.pools import CONFIG, JOBS, Exits, alive, gone, pool
from tests.support.waiting import eventually, until


@pytest.mark.quiet
@pytest.mark.parametrize(
    "kind",
    [
        *("busy", "sleeps_forever", "swallows_exceptions", "returns_late"),
        *("ignores_timeout", "ignores_sigterm", "stuck_in_c"),
    ],
)
async def test_a_job_that_overruns_is_ended_whatever_it_does(kind: str, tmp_path: Path) -> None:
    swallowed = tmp_path / "swallowed"
    async with pool() as bench:
        neighbour = bench.begin("sleep", {"seconds": 1})
        started = time.monotonic()
        outcome = await bench.run(kind, str(swallowed), seconds=0.2)
        took = time.monotonic() - started
        assert isinstance(outcome, TimedOut)
        assert outcome.fault.code is Code.EXECUTION_TIMEOUT
        assert outcome.fault.message == "the job ran longer than its execution timeout of 0.2 s"
        assert 0.2 <= took < 0.2 + 0.4 + 0.5
        assert not swallowed.exists()
        assert isinstance(await neighbour, Succeeded)
        await bench.until_left("timeout")
        await bench.until_full()
        assert await bench.result("echo", 1) == 1


async def test_a_timeout_tells_where_the_job_was_and_what_was_half_done_there_is_met_by_nobody() -> None:
    async with pool(processes=1) as bench:
        late, behind = bench.begin("takes_the_lock", 1e9, seconds=0.1), bench.begin("takes_the_lock", 0)
        outcome = await late
        assert isinstance(outcome, TimedOut)
        assert "in takes_the_lock\n    time.sleep(payload)" in outcome.fault.traceback
        outcome = await behind
        assert isinstance(outcome, Succeeded)
        assert outcome.result == b"true"
        await bench.until_left("timeout")


async def test_the_clock_starts_when_the_job_does_and_not_while_it_waits() -> None:
    async with pool(processes=1) as bench:
        first = bench.begin("sleep", {"seconds": 0.6}, seconds=5)
        second = bench.begin("sleep", {"seconds": 0.1}, seconds=0.5)
        assert isinstance(await first, Succeeded)
        assert isinstance(await second, Succeeded)


async def test_a_timeout_never_hits_the_job_after_it() -> None:
    """Jobs that are over at about the moment of their timeout, with others right behind them."""
    async with pool(processes=1) as bench:
        for _ in range(10):
            edge = [bench.begin("sleep", {"seconds": 0.02}, seconds=0.02) for _ in range(2)]
            after = bench.begin("sleep", {"seconds": 0.03}, seconds=5)
            assert all(isinstance(each, (Succeeded, TimedOut)) for each in await asyncio.gather(*edge))
            assert isinstance(await after, Succeeded)


async def test_stopping_lets_running_jobs_finish_and_gives_back_the_others() -> None:
    async with pool() as bench:
        running = [bench.begin("sleep", {"seconds": 0.3}) for _ in range(2)]
        await bench.until(running=2)
        queued = [bench.begin("echo", 1) for _ in range(2)]
        await asyncio.sleep(0)
        pids = bench.pool.pids
        await bench.pool.stop(grace=5)
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*running))
        assert await asyncio.gather(*queued) == [Interrupted("withdrawn")] * 2
        assert not any(map(alive, pids))
        assert bench.exits == ["drain", "drain"]


async def test_stopping_interrupts_what_is_still_running_at_the_deadline() -> None:
    async with pool() as bench:
        running = [bench.begin("stuck_in_c"), bench.begin("sleep", {"seconds": 30})]
        await bench.until(running=2)
        started = time.monotonic()
        await bench.pool.stop(grace=0.2)
        assert time.monotonic() - started < 5
        assert await asyncio.gather(*running) == [Interrupted("drain deadline")] * 2
        assert bench.exits == ["drain", "drain"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_for_everybody_does_not_disturb_a_job(number: signal.Signals) -> None:
    """What Ctrl-C does to a terminal's group, and a service manager's stop to all of its processes."""
    async with pool() as bench:
        running = [bench.begin("sleep", {"seconds": 0.3}) for _ in range(2)]
        await bench.until(running=2)
        for pid in [*descendants(os.getpid())]:
            if command(pid).find(b"consumer.worker.zygote") >= 0:
                os.kill(pid, number)
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*running))
        assert bench.exits == []


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_a_caller_that_gives_up_leaves_the_place_to_others() -> None:
    async with pool(processes=1) as bench:
        running = bench.begin("sleep", {"seconds": 0.2})
        await bench.until(running=1)
        running.cancel()
        outcomes = await asyncio.gather(*(bench.run("echo", 1) for _ in range(3)))
        assert all(isinstance(outcome, Succeeded) for outcome in outcomes)


PARENT = """
import asyncio, sys, time
import uvloop
from consumer.core.job import Job
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.config import PoolConfig
from consumer.worker.pool import Pool

class Silent:
    def child_exited(self, sort, reason): pass

async def run(pool, kind):
    slot = await pool.take(kind)
    await slot.run(Work(Job(kind, "key", b"null"), 1, 60))

async def main():
    pool = await Pool.start(PoolConfig(modules=("stubborn",), path=(sys.argv[1],)), Silent(), lambda: 0)
    jobs = [asyncio.create_task(run(pool, kind)) for kind in ("runs_a_program", "stuck_in_c")]
    while pool.figures().running < 2:
        await asyncio.sleep(0.01)
    print("running", flush=True)
    await asyncio.gather(*jobs)

uvloop.run(main())
"""


@pytest.mark.parametrize("zygote", [signal.SIGSTOP, signal.SIGKILL])
def test_no_child_outlives_a_parent_that_was_killed(zygote: signal.Signals) -> None:
    """Nor does what a child started, wherever that went; unless nobody is left who could end it."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(JOBS)], stdout=subprocess.PIPE, cwd=ROOT, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "running\n"
        until(lambda: len([*descendants(parent.pid)]) == 4, "the program runs")
        *family, program = descendants(parent.pid)
        os.kill(parent.pid, signal.SIGSTOP)  # else either of the two could still act for the other
        os.kill(family[0], zygote)
        os.kill(parent.pid, signal.SIGKILL)
        until(lambda: not any(map(alive, family)), "no process of the pool is left", within=2)
        if zygote == signal.SIGKILL:
            os.kill(program, signal.SIGKILL)
        until(lambda: not alive(program), "the program is gone", within=2)


async def refused(text: str, tmp_path: Path, **others: str) -> str:
    for name, source in {"shop": text, **others}.items():
        (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(JobModulesError) as error:
        await Pool.start(
            PoolConfig(modules=("shop", *others), path=(str(tmp_path),), start_timeout=10), Exits(), lambda: 0
        )
    assert "\n" not in str(error.value)
    return str(error.value).replace(str(tmp_path), "")


async def test_a_module_that_cant_be_imported_is_named_with_the_line(tmp_path: Path) -> None:
    said = await refused("import os\nimport nowhere\n", tmp_path)
    assert said == (
        "job module 'shop' can't be imported: ModuleNotFoundError: No module named 'nowhere' (/shop.py, line 2)"
    )


async def test_a_module_that_ends_its_process_is_an_error_and_not_a_riddle(tmp_path: Path) -> None:
    assert "SystemExit: 3" in await refused("import sys\nsys.exit(3)\n", tmp_path)
    assert "ended their process while they were imported" in await refused("import os\nos._exit(3)\n", tmp_path)


async def test_a_module_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1e9)\n")
    with pytest.raises(JobModulesError, match=r"slow were not imported within 0\.3 s"):
        await Pool.start(PoolConfig(modules=("slow",), path=(str(tmp_path),), start_timeout=0.3), Exits(), lambda: 0)


async def test_a_memory_limit_below_what_children_need_is_an_error() -> None:
    with pytest.raises(JobModulesError, match=r"raise pool\.memory_limit to"):
        await Pool.start(PoolConfig(CONFIG.modules, path=CONFIG.path, memory_limit=1_000_000), Exits(), lambda: 0)


async def test_a_crash_loop_backs_off_and_ends_with_the_first_good_job() -> None:
    async with pool(processes=1) as bench:
        for _ in range(4):
            assert isinstance(await bench.run("sigkill"), Crashed)
        respawn = bench.pool._crew.teams[Sort.CPU].respawn
        assert respawn.delay > 0
        assert await bench.result("echo", 1) == 1
        assert respawn.delay == 0
        assert bench.pool.healthy
        [pid] = bench.pool.pids
        os.kill(pid, signal.SIGKILL)
        await gone([pid])
        assert await bench.result("echo", 2) == 2


HANGS = """
import os, time
from pathlib import Path
from consumer import job

os.register_at_fork(after_in_child=lambda: time.sleep(1000) if Path({flag!r}).exists() else None)

@job("one")
def one(payload: int) -> int:
    return payload
"""


async def test_a_child_that_hangs_at_its_birth_is_killed_and_counted_and_its_successor_does_the_work(
    tmp_path: Path,
) -> None:
    """As where a lock was held when it was forked."""
    flag = tmp_path / "flag"
    (tmp_path / "hangs.py").write_text(HANGS.format(flag=str(flag)))
    async with pool(processes=1, modules=("hangs",), path=(str(tmp_path),), start_timeout=2.0) as bench:
        flag.touch()
        [pid] = bench.pool.pids
        os.kill(pid, signal.SIGKILL)
        await gone([pid])
        waiting = bench.begin("one", 1)

        async def hangs() -> bool:
            return bool(bench.pool.pids) and bench.pool.pids != [pid]

        await eventually(hangs, "a child that hangs")
        flag.unlink()
        assert isinstance(await waiting, Succeeded)
        assert bench.exits == ["crash", "crash"]
