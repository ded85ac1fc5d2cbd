"""Looks after what nobody looks after: jobs whose message is gone, and rows that nobody needs any more.

All of it may be done by every replica, and twice: a copy too many is absorbed by the claim.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from consumer.core.decode import DecodeRules, decode
from consumer.core.errors import Unavailable
from consumer.core.job import Job
from consumer.core.ports import Chance, Parcel, Publisher, Store
from consumer.core.row import Ref, Row
from consumer.core.sweep import LIVE, request
from consumer.core.topology import Topology
from consumer.metrics import Metrics

PUBLISHED_AT_ONCE = 20
"""Payloads that are read into memory together."""
PRUNED_AT_ONCE = 500
BETWEEN_BATCHES = 0.1
"""Seconds that the database gets for everybody else."""
SHOWN = 5
"""Jobs that a log line names at most."""


@dataclass(frozen=True, slots=True)
class SweepRules:
    """`every` in seconds, `grace` and `retention` in milliseconds.

    `kinds`: those that run here. The store may be that of other queues too, whose jobs we can't publish.
    """

    every: float
    grace: int
    retention: int
    kinds: frozenset[str]
    decode: DecodeRules


class Sweeper:
    def __init__(
        self,
        store: Store,
        publisher: Publisher,
        topology: Topology,
        metrics: Metrics,
        rules: SweepRules,
        chance: Chance,
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._topology = topology
        self._metrics = metrics
        self._rules = rules
        self._chance = chance
        self._log = structlog.get_logger("consumer.sweeper")

    async def keep(self) -> None:
        """Sweep until cancelled; replicas that started together drift apart."""
        while True:
            await asyncio.sleep(self._rules.every * (0.5 + self._chance()))
            await self.sweep()

    async def sweep(self) -> None:
        """One round. What is away ends its own step only: it is tried again at the next."""
        for step in (self._report, self._publish_again, self._prune):
            try:
                await step()
            except Unavailable as error:
                self._log.warning("sweep not finished", step=step.__name__.strip("_"), error=str(error))

    async def _report(self) -> None:
        counts = await self._store.stuck(self._rules.grace)
        for status in LIVE:
            self._metrics.stuck.labels(status).set(counts.get(status, 0))
        if counts:
            self._log.warning("jobs are stuck", **{str(status): count for status, count in sorted(counts.items())})
        self._metrics.unsent.labels(self._metrics.queue).set(await self._store.unsent())

    async def _publish_again(self) -> None:
        published: list[Row] = []
        try:
            while rows := await self._store.overdue(self._rules.kinds, self._rules.grace, PUBLISHED_AT_ONCE):
                published += await self._publish_all(rows)
        finally:
            if published:
                names = [f"{row.kind} {row.key}" for row in published[:SHOWN]]
                self._log.warning("jobs published again", count=len(published), some=names)

    async def _publish_all(self, rows: Sequence[Row]) -> list[Row]:
        """Noted after the confirmation, so that none is lost; and noted as well where the payload is another's."""
        published: list[Row] = []
        seen: list[Ref] = []
        try:
            for row in rows:
                if self._payload_is_its_own(row):
                    parcel = Parcel(self._topology.namespace, self._topology.queue, request(row), "submit")
                    await self._publisher.publish(parcel)
                    published.append(row)
                seen.append(Ref(row.kind, row.key, row.token))
        finally:
            await self._store.swept(seen)
        return published

    def _payload_is_its_own(self, row: Row) -> bool:
        """A correction came as a message, and left the payload that it corrects in the row."""
        job = decode(request(row), self._rules.decode)
        return isinstance(job, Job) and job.fingerprint == row.fingerprint

    async def _prune(self) -> None:
        """For half of the time between two sweeps at most."""
        deadline = asyncio.get_running_loop().time() + self._rules.every / 2
        await self._forget("rows pruned", self._store.prune, deadline)
        await self._forget("dead letters forgotten", self._store.letters.prune, deadline)

    async def _forget(self, event: str, prune: Callable[[int, int], Awaitable[int]], deadline: float) -> None:
        pruned, loop = 0, asyncio.get_running_loop()
        while (count := await prune(self._rules.retention, PRUNED_AT_ONCE)) and loop.time() < deadline:
            pruned += count
            await asyncio.sleep(BETWEEN_BATCHES)
        if pruned:
            self._log.info(event, count=pruned)
