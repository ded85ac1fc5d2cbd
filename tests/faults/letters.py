"""A poisoned batch in the dead-letter queue, on a real broker and both databases: is it quick, and is nothing lost?

    make letters LETTERS=10000

Each figure is of the whole command, its start included. Ends with 1 where one is beyond its limit.
"""

import argparse
import asyncio
import logging
import sys
import tempfile
import time
from contextlib import AsyncExitStack

from consumer.broker.deadletters import dead_letters
from consumer.wiring import broker_of, topology_of
from schemas.codes import Code
from tests.support.command import consumer
from tests.support.graves import Graves
from tests.support.postgres import Postgres
from tests.support.rabbit import Rabbit
from tests.support.settings import settings

LOOKS = 50
LIST_SECONDS, GROUPS_SECONDS, REDRIVEN_A_SECOND = 1.0, 3.0, 1_000
ERRORS = tuple(f"{word} is out of order at {{key}}" for word in ("alpha", "beta", "gamma", "delta", "epsilon"))
RARE = 100
"""One letter in so many is of another code."""


class Report:
    def __init__(self) -> None:
        self.well = True

    def say(self, what: str, found: str, *, well: bool = True) -> None:
        self.well = self.well and well
        print(f"{'ok   ' if well else 'FAULT'}  {what:<42}  {found}", flush=True)  # noqa: T201


async def timed(chosen: dict[str, str], *arguments: str) -> tuple[float, str]:
    started = time.perf_counter()
    done = await consumer("dead", *arguments, settings=chosen)
    if done.code:
        raise RuntimeError(f"{arguments}: {done}")
    return time.perf_counter() - started, done.out


async def poison(graves: Graves, count: int) -> list[str]:
    ids: list[str] = []
    for start in range(0, count, RARE):
        keys = [f"k{number}" for number in range(start, min(start + RARE, count))]
        ids += await graves.bury(keys[:1], code=Code.EXPIRED, error="came too late", payload="x" * 200)
        ids += await graves.bury(keys[1:], error=ERRORS[start // RARE % len(ERRORS)], payload="x" * 200)
    return ids


async def keys_at_work(graves: Graves) -> list[str | None]:
    """Take all away that is in the work queue, in its order."""
    keys: list[str | None] = []
    async with dead_letters(broker_of(graves.settings), topology_of(graves.settings).work_queue) as queue:
        while (taken := await queue.take()) is not None:
            queue.ack(taken[0])
            keys.append(taken[1].message_id)
    return keys


async def examine(broker: str, store: str, count: int, report: Report) -> None:
    chosen = settings(broker, store)
    name = store.partition(":")[0]
    async with Graves(broker, store) as graves:
        ids = await poison(graves, count)
        seconds, _ = await timed(chosen, "list")
        report.say(f"{name}: list, first page of {count:,}", f"{seconds:.2f} s", well=seconds < LIST_SECONDS)
        seconds, _ = await timed(chosen, "list", "--groups")
        report.say(f"{name}: list --groups", f"{seconds:.2f} s", well=seconds < GROUPS_SECONDS)
        seconds, out = await timed(chosen, "export")
        report.say(f"{name}: export", f"{seconds:.2f} s", well=out.count("\n") == count)
        for number in range(LOOKS - 3):
            await timed(chosen, *(("list",), ("list", "--groups"), ("show", ids[number]))[number % 3])
        report.say(
            f"{name}: letters after {LOOKS} looks", f"{await graves.depth():,}", well=await graves.depth() == count
        )
        rare = len(ids[::RARE])
        seconds, _ = await timed(chosen, "redrive", "--code", "expired")
        there = await graves.work()
        report.say(f"{name}: redrive {rare} of {count:,}", f"{seconds:.2f} s, {there} sent", well=there == rare)
        seconds, _ = await timed(chosen, "redrive")
        rate = (count - rare) / seconds
        report.say(f"{name}: redrive the rest", f"{seconds:.2f} s, {rate:,.0f}/s", well=rate >= REDRIVEN_A_SECOND)
        sent = await keys_at_work(graves)
        lost, twice = count - len(set(sent)), len(sent) - len(set(sent))
        left = await graves.work() + await graves.depth() + await graves.listed()
        report.say(f"{name}: lost, sent twice, left over", f"{lost}, {twice}, {left}", well=not (lost or twice or left))
        rest = [f"k{number}" for number in range(count) if number % RARE]
        report.say(f"{name}: those that were held kept their order", "", well=sent[rare:] == rest)


async def run(count: int) -> bool:
    report = Report()
    async with AsyncExitStack() as stack:
        rabbit = stack.enter_context(Rabbit())
        postgres = stack.enter_context(Postgres(durable=True))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for store in (f"sqlite:///{folder}/jobs.sqlite3", postgres.create_database()):
            await examine(rabbit.vhost(), store, count, report)
    return report.well


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=10_000)
    logging.disable(logging.WARNING)
    sys.exit(not asyncio.run(run(parser.parse_args().letters)))


if __name__ == "__main__":
    main()
