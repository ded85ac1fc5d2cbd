"""What one job costs: CPU of all our processes, throughput and memory, on a real broker and a real PostgreSQL.

Run it with `make bench`, or `python -m tests.bench.end_to_end [JOBS]`. It measures and asserts nothing: a slow or
busy machine is no fault. The yardstick is the design's 200 µs of CPU per job and 100 MB.
"""

import asyncio
import sys
import time
from pathlib import Path

import asyncpg

from tests.support.daemon import Daemon
from tests.support.postgres import Postgres
from tests.support.producer import Producer
from tests.support.rabbit import Rabbit
from tests.support.waiting import eventually

TICKS = 100
FINISHED = "SELECT count(*) FROM consumer_jobs WHERE status = 'succeeded'"
WARM_UP = 500
PUBLISHERS = 64


def processes(root: int) -> list[int]:
    """The process and all its descendants."""
    children = Path(f"/proc/{root}/task/{root}/children").read_text().split()
    return [root, *(pid for child in children for pid in processes(int(child)))]


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of the processes so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def memory(pid: int, what: str) -> float:
    """Rss or Pss in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{what}:"))


async def publish(url: str, first: int, count: int) -> None:
    async with Producer(url) as producer:
        for start in range(first, first + count, PUBLISHERS):
            numbers = range(start, min(start + PUBLISHERS, first + count))
            await asyncio.gather(*(producer.submit("primes.count", {"n": 100}, f"job-{n}") for n in numbers))


async def finished(connection: asyncpg.Connection, count: int) -> None:
    async def all_are() -> bool:
        return bool(await connection.fetchval(FINISHED) >= count)

    await eventually(all_are, f"{count} jobs are done", within=600)


async def measure(rabbit: Rabbit, database: str, jobs: int) -> None:
    settings = {"BROKER__URL": rabbit.url, "STORE__URL": database, "POOL__PROCESSES": "2", "POOL__LOOK_AHEAD": "16"}
    async with Daemon(settings) as declaring:
        await declaring.ready()
    await publish(rabbit.url, 0, WARM_UP + jobs)
    connection = await asyncpg.connect(database)
    async with Daemon(settings) as daemon:
        await finished(connection, WARM_UP)
        pids = processes(daemon.pid)
        done = await connection.fetchval(FINISHED)
        before, began = cpu_seconds(pids), time.perf_counter()
        await finished(connection, WARM_UP + jobs)
        took, used = time.perf_counter() - began, cpu_seconds(pids) - before
        await connection.close()
        jobs = WARM_UP + jobs - done
        each = [f"{cpu_seconds([pid]) / (jobs + WARM_UP) * 1e6:.0f}" for pid in pids]
        print(f"{jobs} jobs in {took:.1f} s = {jobs / took:.0f}/s; {used / jobs * 1e6:.0f} µs CPU per job in all")
        print(f"per process (daemon, zygote, children), start-up included: {', '.join(each)} µs per job")
        for what in ("Rss", "Pss"):
            figures = [memory(pid, what) for pid in pids]
            rows = ", ".join(f"{figure:.0f}" for figure in figures)
            print(f"{what}: {rows} MB; daemon + children {sum(figures) - figures[1]:.0f} MB")


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with Rabbit() as rabbit, Postgres() as postgres:
        asyncio.run(measure(rabbit, postgres.create_database(), jobs))


if __name__ == "__main__":
    main()
