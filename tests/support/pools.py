"""Pools for tests: real children, with the job modules of tests/support/jobs."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from consumer.core.job import Job
from consumer.core.outcome import Outcome, Succeeded
from consumer.core.ports import Work
from consumer.worker.config import PoolConfig
from consumer.worker.member import Member
from consumer.worker.pool import Pool
from consumer.worker.wire import HEADER
from tests.support.waiting import eventually

JOBS = Path(__file__).parent / "jobs"
CONFIG = PoolConfig(
    modules=("ordinary", "deadly", "stubborn", "results"), path=(str(JOBS),), kill_grace=0.4, result_limit=8_000_000
)


class Line(NamedTuple):
    """What a job said."""

    kind: str
    key: str
    attempt: int
    stream: str
    level: int
    text: str


class Exits:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.sorts: list[str] = []
        self.lines: list[Line] = []
        self.marks: list[tuple[str, str, float, str]] = []

    def child_exited(self, sort: str, reason: str) -> None:
        self.sorts.append(sort)
        self.reasons.append(reason)

    def said(self, kind: str, key: str, stream: str, text: str, *, attempt: int = 0, level: int = 0) -> None:
        self.lines.append(Line(kind, key, attempt, stream, level, text))

    def progressed(self, kind: str, key: str, fraction: float, note: str) -> None:
        self.marks.append((kind, key, fraction, note))


class Bench:
    """A pool with short ways to use it."""

    def __init__(self, pool: Pool, exits: Exits) -> None:
        self.pool = pool
        self.exits = exits.reasons
        self.ended = exits.sorts
        self.lines = exits.lines
        self.marks = exits.marks

    async def run(
        self, kind: str, payload: Any = None, /, *, seconds: float = 20.0, alone: bool = False, **job: Any
    ) -> Outcome:
        slot = await self.pool.take(kind)
        assert slot is not None
        body = job.pop("body", json.dumps(payload).encode())
        attempt = job.pop("attempt", 1)
        key = job.pop("key", "key")
        return await slot.run(Work(Job(kind, key, body, **job), attempt, seconds, alone))

    def begin(self, kind: str, payload: Any = None, /, **options: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.run(kind, payload, **options))

    async def result(self, kind: str, payload: Any = None, /, **options: Any) -> Any:
        outcome = await self.run(kind, payload, **options)
        assert isinstance(outcome, Succeeded), outcome
        return json.loads(outcome.result)

    async def until(self, running: int) -> None:
        """That many jobs have started and are not over."""

        async def so() -> bool:
            claimed = [has_claimed(member) for member in self.pool._crew.members if member.queue]
            return len(claimed) == running and all(claimed)

        await eventually(so, f"{running} running jobs")

    async def until_gone(self, pid: int) -> None:
        """The pool, too, knows that this child has ended."""

        async def so() -> bool:
            return pid not in self.pool.pids

        await eventually(so, f"the end of {pid} is noticed")

    async def until_left(self, *reasons: str) -> None:
        """These are all exits."""

        async def so() -> bool:
            return self.exits == [*reasons]

        await eventually(so, f"children that left: {reasons}, and not {self.exits}")

    async def until_full(self) -> None:
        async def so() -> bool:
            return self.pool.full

        await eventually(so, "a full pool", within=10)


@asynccontextmanager
async def pool(**changes: Any) -> AsyncIterator[Bench]:
    """A pool of two children, stopped at the end: whatever a test did, no child may be left."""
    exits = Exits()
    started = await Pool.start(replace(CONFIG, **changes), exits, lambda: round(time.time() * 1000))
    pids = set(started.pids)
    try:
        yield Bench(started, exits)
    finally:
        pids |= set(started.pids)
        await started.stop(grace=0)
    assert [pid for pid in pids if alive(pid)] == []


def has_claimed(member: Member) -> bool:
    """Whether the ticket of a child's first run is out of the parent's reach."""
    try:
        packet = member._tickets._unclaimed.recv(HEADER.size, socket.MSG_DONTWAIT | socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return bool(HEADER.unpack(packet)[3] != member.queue[0].id)


def state(pid: int) -> str:
    """R, S, T, Z and so on; nothing where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def zygote_of(pid: int) -> int:
    """Whose child that process is."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody reaped does not."""
    return state(pid) not in ("", "Z")


async def gone(pids: list[int], within: float = 2.0) -> None:
    async def so() -> bool:
        return not any(map(alive, pids))

    await eventually(so, f"the end of {pids}", within)


def own_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
