"""Misbehaving async jobs by the thousand, in io children that are killed at random: each must get what it deserves.

python -m tests.faults.io_soak --jobs 20000 --seed 1
"""

import argparse
import asyncio
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from consumer.core.outcome import Crashed, Failed, Outcome, Succeeded, TimedOut
from tests.support.pools import Bench, own_descriptors, pool

KILL_EVERY = 0.2
AT_A_TIME = 60
TICK = 0.01


@dataclass(frozen=True, slots=True)
class Sort:
    """How often a kind comes, what it is given, and what is right for it.

    A job that lives long enough to be hit again and again may be charged with that, if it is to be charged anyway.
    """

    weight: int
    kind: str
    payload: Callable[[random.Random], Any]
    right: tuple[type[Outcome], ...]
    seconds: float = 20.0


SORTS = [
    Sort(300, "nap", lambda chance: {"seconds": chance.random() / 20}, (Succeeded,)),
    Sort(300, "async_echo", lambda chance: "x" * chance.randrange(40_000), (Succeeded,)),
    Sort(100, "blocks", lambda chance: chance.random() / 50, (Succeeded,)),
    Sort(100, "spins", lambda _: 0.02, (Succeeded,)),
    Sort(50, "huge_async", lambda _: 500_000, (Succeeded,)),
    Sort(50, "raises", lambda _: "lookup", (Failed,)),
    Sort(50, "raises", lambda _: "sys_exit", (Failed,)),
    Sort(10, "swallows_cancel", lambda _: None, (TimedOut, Crashed), seconds=0.2),
    Sort(10, "async_crash", lambda _: "segfault", (Crashed,)),
    Sort(10, "crash_in_thread", lambda _: None, (Crashed,)),
]


@dataclass
class Report:
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    kills: int = 0
    seconds: float = 0.0
    lag: list[float] = field(default_factory=list)

    @property
    def lag_p99(self) -> float:
        return sorted(self.lag)[len(self.lag) * 99 // 100] if self.lag else 0.0


async def run(jobs: int, seed: int, told: Callable[[str], None]) -> Report:
    report, chance = Report(), random.Random(seed)
    async with pool(modules=("waiting", "unruly"), io_processes=2, io_concurrency=20) as bench:
        descriptors, started = own_descriptors(), time.monotonic()
        chosen = iter(chance.choices(SORTS, [sort.weight for sort in SORTS], k=jobs))
        over = asyncio.Event()
        killing = asyncio.create_task(_kill(bench, chance, report, over))
        _measure_lag(report, over)
        await asyncio.gather(*(_feed(bench, chosen, chance, report) for _ in range(AT_A_TIME)))
        over.set()
        await killing
        report.seconds = time.monotonic() - started
        await bench.until_full()
        if own_descriptors() > descriptors:
            report.wrong.append(f"{own_descriptors() - descriptors} descriptors more than at the start")
        told(f"children ended by: {Counter(bench.exits)}")
    return report


async def _feed(bench: Bench, chosen: Any, chance: random.Random, report: Report) -> None:
    for sort in chosen:
        outcome = await bench.run(sort.kind, sort.payload(chance), seconds=sort.seconds)
        report.outcomes[type(outcome).__name__] += 1
        if not isinstance(outcome, sort.right):
            report.wrong.append(f"{sort.kind}: {outcome}"[:400])


async def _kill(bench: Bench, chance: random.Random, report: Report, over: asyncio.Event) -> None:
    while not over.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_EVERY):
                await over.wait()
        if bench.pool.pids:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(bench.pool.pids), signal.SIGKILL)
                report.kills += 1


def _measure_lag(report: Report, over: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time() + TICK

    def tick() -> None:
        report.lag.append(loop.time() - due)
        if not over.is_set():
            _measure_lag(report, over)

    loop.call_at(due, tick)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--jobs", type=int, default=20_000)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    report = asyncio.run(run(chosen.jobs, chosen.seed, _tell))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    _tell(f"{chosen.jobs} jobs in {report.seconds:.1f} s, {report.kills} kills: {dict(report.outcomes)}")
    _tell(f"the parent's loop was late by {report.lag_p99 * 1000:.1f} ms (p99); {memory} MiB at its peak")
    for line in report.wrong:
        _tell(line)
    sys.exit(bool(report.wrong))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
