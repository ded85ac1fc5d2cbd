"""A pool of real children under jobs that misbehave in eight ways, while a child is killed at random every 200 ms.

    make soak JOBS=20000 SEED=7 ROUNDS=500

The seed chooses the jobs and the children that are struck; the machine chooses what these do at that moment.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from consumer.core.outcome import Crashed, Failed, Outcome, Succeeded, TimedOut
from consumer.worker.cpu_member import CpuMember
from schemas.codes import Code
from tests.faults.gauges import Gauges
from tests.support.pools import Bench, gone, pool, state
from tests.support.waiting import elapse

KINDS = ("dies", "overruns", "hungry", "raises", "talks_nonsense", "changes", "leaves", "returns_much")
POOL: dict[str, Any] = {
    "modules": ("soaked",),
    "processes": 4,
    "look_ahead": 2,
    "kill_grace": 0.2,
    "memory_limit": 200 * 1024 * 1024,
    "open_files": 512,
    "recycle_jobs": 200,
    "recycle_memory": 120 * 1024 * 1024,
}
IN_FLIGHT = 24
SAY_EVERY = 2_000


@dataclass(frozen=True)
class Plan:
    jobs: int
    seed: int
    every: float = 0.2


def is_right(kind: str, payload: int, outcome: Outcome) -> bool:
    match kind, outcome:
        case "dies", Crashed(fault):
            return fault.code is Code.WORKER_CRASHED
        case "overruns", TimedOut():
            return True
        case "hungry", Crashed(fault):
            return fault.code is Code.OUT_OF_MEMORY
        case "raises", Failed(fault):
            return fault.code is Code.ATTEMPTS_EXHAUSTED
        case "talks_nonsense", Failed(fault):
            return fault.code is Code.RESULT_NOT_JSON
        case "returns_much", Succeeded(result):
            return len(result) == 1_000_002 + Random(payload).randrange(4_000_000)
        case "changes" | "leaves", Succeeded(result):
            return result == str(payload).encode()
        case "steady", Succeeded(result):
            return result == str(payload + 1).encode()
    return False


class Soak:
    def __init__(self, plan: Plan, bench: Bench, say: Callable[[str], object]) -> None:
        self._say = say
        self._plan = plan
        self._bench = bench
        self._random = Random(plan.seed)
        self._numbers = iter(range(plan.jobs))
        self._struck: set[str] = set()
        self._over = asyncio.Event()
        self.gauges = Gauges(plan.jobs)
        self.hits = 0

    async def run(self) -> None:
        self.gauges.begin()
        helpers = [asyncio.create_task(each) for each in (self._strike_on(), self.gauges.measure_lag(self._over))]
        await asyncio.gather(*(self._work() for _ in range(IN_FLIGHT)))
        self._over.set()
        await asyncio.gather(*helpers)
        await self._bench.until_full()
        self.gauges.look_around()
        self.gauges.exits.update(self._bench.exits)

    async def _work(self) -> None:
        for number in self._numbers:
            kind = self._random.choice(KINDS) if self._random.random() < 0.4 else "steady"
            key = str(number)
            outcome = await self._bench.run(kind, number, key=key, seconds=0.1 if kind == "overruns" else 20.0)
            self._note(kind, number, key, outcome)
            if number and number % SAY_EVERY == 0:
                self._say(f"{number} jobs, {self.gauges.kills} kills, {len(self.gauges.wrong)} wrong")

    def _note(self, kind: str, number: int, key: str, outcome: Outcome) -> None:
        self.gauges.came(outcome)
        if key in self._struck:
            self.hits += isinstance(outcome, Crashed)
            if isinstance(outcome, Crashed) and "SIGKILL" in outcome.fault.message:
                return
        if not is_right(kind, number, outcome):
            self.gauges.wrong.append(f"{kind} {number} became {str(outcome)[:300]}")

    async def _strike_on(self) -> None:
        while not self._over.is_set():
            await elapse(self._plan.every)
            if not self._over.is_set() and (children := [child for child in self._children() if child.ready]):
                with suppress(ProcessLookupError):  # one that is gone already
                    await self._strike(self._random.choice(children))

    def _children(self) -> list[CpuMember]:
        return [child for child in self._bench.pool._crew.members if isinstance(child, CpuMember)]

    async def _strike(self, child: CpuMember) -> None:
        """Stopped first, so that what it has begun can be told; else it might begin another before it dies."""
        os.kill(child.pid, signal.SIGSTOP)
        while state(child.pid) not in ("T", "", "Z"):  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(0)
        if state(child.pid) == "T" and child in self._children():
            self._struck.update(run.work.job.key for run in child.queue if child.has_begun(run))
            os.kill(child.pid, signal.SIGKILL)
            self.gauges.killed()


async def strike_results(rounds: int, size: int, every: float) -> tuple[int, int]:
    """Kill children while they return so many bytes, each round `every` seconds later than the one before.

    Return how many results came, and how many didn't.
    """
    came = lost = 0
    async with pool(processes=2) as bench:
        loop = asyncio.get_running_loop()
        for step in range(rounds):
            jobs = [bench.begin("huge", size) for _ in range(2)]
            await asyncio.sleep(0)
            struck: list[int] = []
            kills = [loop.call_later(step * every, _kill, pid, struck) for pid in bench.pool.pids]
            async with asyncio.timeout(20):
                outcomes = await asyncio.gather(*jobs)
            for each in kills:
                each.cancel()  # else one that comes too late for its round hits the next job,
            await gone(struck)  # as does one whose child is not dead yet
            for outcome in outcomes:
                assert isinstance(outcome, Succeeded | Crashed), outcome
                assert not isinstance(outcome, Succeeded) or len(outcome.result) == size + 2
            came += sum(isinstance(outcome, Succeeded) for outcome in outcomes)
            lost += sum(isinstance(outcome, Crashed) for outcome in outcomes)
            assert await bench.result("echo", step) == step
    return came, lost


def _kill(pid: int, struck: list[int]) -> None:
    if state(pid) not in ("", "Z"):
        os.kill(pid, signal.SIGKILL)
        struck.append(pid)


async def run(plan: Plan, say: Callable[[str], object]) -> Soak:
    async with pool(**POOL) as bench:
        soak = Soak(plan, bench, say)
        await soak.run()
    return soak


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--rounds", type=int, default=500)
    given = parser.parse_args()
    say(f"seed {given.seed}")
    came, lost = asyncio.run(strike_results(given.rounds, 5_000_000, 0.06 / given.rounds))
    say(f"{given.rounds} rounds of two results of 5 MB: {came} came, {lost} were killed on their way")
    soak = asyncio.run(run(Plan(given.jobs, given.seed), say))
    say(f"{soak.gauges}\n{soak.hits} kills met a job")
    sys.exit(bool(soak.gauges.wrong))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
