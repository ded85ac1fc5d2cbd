"""CPU per job of the pool's round trip, parent and children: python -m tests.bench.pool [jobs]"""

import asyncio
import os
import resource
import sys
import time
from pathlib import Path

import uvloop

from consumer.core.job import Job
from consumer.core.ports import Work
from consumer.worker.config import PoolConfig
from consumer.worker.pool import Pool


class Silent:
    def child_exited(self, sort: str, reason: str) -> None:
        pass

    def said(self, kind: str, key: str, stream: str, text: str, *, attempt: int = 0, level: int = 20) -> None:
        pass

    def progressed(self, kind: str, key: str, fraction: float, note: str) -> None:
        pass


async def measure(jobs: int) -> None:
    config = PoolConfig(modules=("consumer.jobs.primes", "consumer.jobs.text"))
    pool = await Pool.start(config, Silent(), lambda: round(time.time() * 1000))
    work = Work(Job("primes.count", "key", b'{"n":100}'), attempt=1, timeout=30.0)
    left = iter(range(jobs))

    async def feeder() -> None:
        for _ in left:
            slot = await pool.take("primes.count")
            assert slot is not None
            await slot.run(work)

    await asyncio.gather(*(feeder() for _ in range(6)))
    left = iter(range(jobs))
    used, started = cpu_seconds(pool), time.perf_counter()
    await asyncio.gather(*(feeder() for _ in range(6)))
    took = time.perf_counter() - started
    parent, children = (after - before for after, before in zip(cpu_seconds(pool), used, strict=True))
    processes = {"parent": os.getpid(), "zygote": parent_of(pool.pids[0]), "a child": pool.pids[0]}
    lines = [
        f"{jobs / took:,.0f} jobs/s",
        f"CPU per job: {(parent + children) / jobs * 1e6:.1f} µs",
        f"  parent    {parent / jobs * 1e6:.1f} µs",
        f"  children  {children / jobs * 1e6:.1f} µs",
        *(f"{name}: {memory(pid)}" for name, pid in processes.items()),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    await pool.stop(grace=1)


def cpu_seconds(pool: Pool) -> tuple[float, float]:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime, sum(scheduled(pid) for pid in pool.pids)


def scheduled(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def memory(pid: int) -> str:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kilobytes = {name.rstrip(":"): int(size) for name, size, _ in (line.split() for line in lines)}
    return f"RSS {kilobytes['Rss'] / 1024:.1f} MB, PSS {kilobytes['Pss'] / 1024:.1f} MB"


if __name__ == "__main__":
    uvloop.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
