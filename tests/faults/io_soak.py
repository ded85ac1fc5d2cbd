"""Misbehaving async jobs by the thousand, in io children that are killed at random: each must get what it deserves.

make soak JOBS=20000 SEED=7
"""

import argparse
import asyncio
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from consumer.core.outcome import Crashed, Failed, Outcome, Succeeded, TimedOut
from tests.faults.gauges import Gauges
from tests.support.pools import Bench, pool
from tests.support.waiting import elapse

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


async def run(jobs: int, seed: int) -> Gauges:
    gauges, chance, over = Gauges(jobs), random.Random(seed), asyncio.Event()
    async with pool(modules=("waiting", "unruly"), io_processes=2, io_concurrency=20) as bench:
        gauges.begin()
        chosen = iter(chance.choices(SORTS, [sort.weight for sort in SORTS], k=jobs))
        helpers = [asyncio.create_task(each) for each in (_kill(bench, chance, gauges, over), gauges.measure_lag(over))]
        await asyncio.gather(*(_feed(bench, chosen, chance, gauges) for _ in range(AT_A_TIME)))
        over.set()
        await asyncio.gather(*helpers)
        await bench.until_full()
        gauges.look_around()
        gauges.exits.update(bench.exits)
    return gauges


async def _feed(bench: Bench, chosen: Iterator[Sort], chance: random.Random, gauges: Gauges) -> None:
    for sort in chosen:
        outcome = await bench.run(sort.kind, sort.payload(chance), seconds=sort.seconds)
        gauges.came(outcome)
        if not isinstance(outcome, sort.right):
            gauges.wrong.append(f"{sort.kind}: {outcome}"[:400])


async def _kill(bench: Bench, chance: random.Random, gauges: Gauges, over: asyncio.Event) -> None:
    while not over.is_set():
        await elapse(KILL_EVERY)
        if bench.pool.pids:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(bench.pool.pids), signal.SIGKILL)
                gauges.killed()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--jobs", type=int, default=20_000)
    arguments.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    chosen = arguments.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    gauges = asyncio.run(run(chosen.jobs, chosen.seed))
    sys.stdout.write(f"seed {chosen.seed}\n{gauges}\n")
    sys.exit(bool(gauges.wrong))


if __name__ == "__main__":
    main()
