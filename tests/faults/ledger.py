"""What was published, and whether all of it came to the end that it had to."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random
from typing import Any

import aio_pika
import asyncpg
from aio_pika.exceptions import AMQPException

from tests.support.producer import Producer
from tests.support.waiting import elapse

KINDS = ("steady",) * 85 + ("asking",) * 5 + ("wobbly",) * 6 + ("hopeless",) * 2 + ("refused",) * 2
SECONDS = (0.0,) * 12 + (0.002,) * 4 + (0.01,) * 3 + (0.3,)
TWICE = 0.02
"""The share of jobs that the producer publishes twice."""
WORKED = ("steady", "asking", "wobbly")
ATTEMPTS = {"steady": 1, "asking": 1, "wobbly": 3, "hopeless": 3, "refused": 1}
CODES = {"hopeless": "attempts_exhausted", "refused": "rejected"}
CONCURRENT = 100
LOST = (AMQPException, ConnectionError, TimeoutError, OSError, asyncio.CancelledError, RuntimeError)
"""What a client may raise when its broker is gone."""
GUARD = """
CREATE TABLE overwritten (key text);
CREATE FUNCTION note_overwritten() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO overwritten VALUES (old.key); RETURN new; END $$;
CREATE TRIGGER results_are_final AFTER UPDATE ON consumer_jobs FOR EACH ROW
WHEN (old.status = 'succeeded') EXECUTE FUNCTION note_overwritten();
"""


@dataclass(frozen=True)
class Published:
    kind: str
    key: str
    payload: Any


@dataclass
class Report:
    """`wrong` has one sentence a fault of the daemon; the rest is for information."""

    jobs: int = 0
    succeeded: int = 0
    failed: int = 0
    letters: int = 0
    crashes_charged: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"jobs {self.jobs}  succeeded {self.succeeded}  failed as they must {self.failed}",
            f"dead letters {self.letters}  attempts charged to children killed under their job {self.crashes_charged}",
        ]
        return "\n".join([*lines, *(f"WRONG {line}" for line in self.wrong[-20:]), f"{len(self.wrong)} wrong"])


class Ledger:
    """`follow_ups`: how many each asking job asks for. They are owed like all others, and not published by us."""

    def __init__(self, random: Random, jobs: int, follow_ups: int) -> None:
        self._producer: Producer | None = None
        self.jobs = [self._job(random, number, follow_ups) for number in range(jobs)]
        asking = [job for job in self.jobs if job.kind == "asking"]
        asked = [Published("steady", f"asking/{job.key}/{n}", 0.0) for job in asking for n in range(1, follow_ups + 1)]
        self.owed = [*self.jobs, *asked]
        self._twice = {job.key for job in self.jobs if random.random() < TWICE}

    @staticmethod
    def _job(random: Random, number: int, follow_ups: int) -> Published:
        kind = random.choice(KINDS)
        payloads = {"steady": random.choice(SECONDS), "asking": follow_ups, "wobbly": ATTEMPTS["wobbly"] - 1}
        payload = payloads.get(kind)
        return Published(kind, f"{kind}-{number}", payload)

    async def publish(self, urls: list[str], within: float) -> None:
        """Publish everything, evenly over `within` seconds, each job until a node of the broker has confirmed it."""
        nodes = cycle(urls)
        waiting = iter(self.jobs)
        began, done = time.monotonic(), 0
        while batch := list(islice(waiting, CONCURRENT)):
            while not await self._confirmed(nodes, batch):
                await self._leave()
            done += len(batch)
            await elapse(began + within * done / len(self.jobs) - time.monotonic())
        await self._leave()

    async def _confirmed(self, nodes: Iterator[str], batch: list[Published]) -> bool:
        """Else all of the batch is to be published again: what was confirmed of it comes twice."""
        try:
            async with asyncio.timeout(5):
                if self._producer is None:
                    self._producer = await Producer(next(nodes)).__aenter__()
                await asyncio.gather(*(self._submit(self._producer, job) for job in batch))
        except LOST:
            ourselves = asyncio.current_task()
            if ourselves and ourselves.cancelling():
                raise
            return False
        return True

    async def _leave(self) -> None:
        """Go to another node, after a moment."""
        if self._producer is not None:
            with suppress(*LOST):
                await asyncio.wait_for(self._producer.__aexit__(), 1)
        self._producer = None
        await elapse(0.3)

    async def _submit(self, producer: Producer, job: Published) -> None:
        for _ in range(2 if job.key in self._twice else 1):
            await producer.submit(job.kind, job.payload, job.key)

    async def unfinished(self, store: str) -> int:
        connection = await asyncpg.connect(store)
        query = "SELECT count(*) FROM consumer_jobs WHERE status IN ('succeeded', 'failed')"
        finished: int = await connection.fetchval(query)
        await connection.close()
        return len(self.owed) - finished

    async def check(self, store: str, letters: list[aio_pika.abc.AbstractIncomingMessage]) -> Report:
        connection = await asyncpg.connect(store)
        rows = {row["key"]: row for row in await connection.fetch("SELECT * FROM consumer_jobs")}
        overwritten = [row["key"] for row in await connection.fetch("SELECT key FROM overwritten")]
        await connection.close()
        report = Report(len(self.owed), letters=len(letters))
        report.wrong += [f"{key}: its result was written twice" for key in overwritten]
        report.wrong += [f"{key}: nobody asked for it" for key in rows.keys() - {job.key for job in self.owed}]
        dead = Counter((letter.message_id, letter.headers.get("consumer-code")) for letter in letters)
        for job in self.owed:
            _check_job(job, rows.get(job.key), dead, report)
        return report


def _check_job(job: Published, row: Any, dead: Counter[Any], report: Report) -> None:
    if row is None:
        report.wrong.append(f"{job.key}: lost")
        return
    crashed = sum(past["code"] == "worker_crashed" for past in json.loads(row["history"]))
    report.crashes_charged += crashed
    if not 0 <= row["attempt"] - ATTEMPTS[job.kind] <= (crashed if job.kind != "hopeless" else 0):
        report.wrong.append(f"{job.key}: attempt {row['attempt']}, of which {crashed} crashed")
    wanted = ("succeeded", None) if job.kind in WORKED else ("failed", CODES[job.kind])
    if (row["status"], row["error_code"]) != wanted:
        report.wrong.append(f"{job.key}: {row['status']} {row['error_code']}, wanted {wanted}")
        return
    letters = {code for key, code in dead if key == job.key}
    if letters != ({CODES[job.kind]} if job.kind in CODES else set()):
        report.wrong.append(f"{job.key}: {row['status']}, with dead letters {sorted(map(str, letters))}")
    if job.kind in WORKED:
        report.succeeded += 1
        if json.loads(row["result"]) != {"key": job.key, "attempt": row["attempt"]}:
            report.wrong.append(f"{job.key}: another's result {row['result']}")
    else:
        report.failed += 1
