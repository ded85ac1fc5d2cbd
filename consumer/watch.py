"""Looks at our queues from the broker's side: depths for the metrics, and whether it knows us as a consumer."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import structlog

from consumer.core.errors import BrokerUnavailable
from consumer.core.topology import Topology
from consumer.metrics import Metrics

EVERY = 15.0
"""Seconds between two looks."""
SOON = 0.5
"""Seconds between two looks for a session that there is something to look at."""


class Depth(Protocol):
    @property
    def ready(self) -> int: ...
    @property
    def consumers(self) -> int: ...


class Session(Protocol):
    async def depths(self, queues: Sequence[str]) -> Mapping[str, Depth | None]: ...
    async def blocked(self) -> bool: ...
    def end(self, reason: str, detail: str) -> None: ...


class Watch:
    """`session` says which session consumes right now; None while none does."""

    def __init__(self, topology: Topology, metrics: Metrics, session: Callable[[], Session | None]) -> None:
        self._metrics = metrics
        self._session = session
        self._work = topology.work_queue
        self._roles = {
            "work": (topology.work_queue,),
            "dead": (topology.dead_queue,),
            "delay": tuple(topology.ladder.level(k) for k in range(topology.ladder.levels)),
        }
        self._log = structlog.get_logger("consumer.watch")

    async def keep(self) -> None:
        while True:
            session = self._session()
            if session is not None:
                await self.look(session)
            await asyncio.sleep(EVERY if session is not None else SOON)

    async def look(self, session: Session) -> None:
        """One look; any doubt about the session ends it."""
        names = [name for queues in self._roles.values() for name in queues]
        try:
            depths = await session.depths(names)
            self._metrics.blocked.set(await session.blocked())
        except BrokerUnavailable as error:
            self._metrics.poll_errors.inc()
            self._log.warning("queue depths not read", error=str(error))
            session.end("watchdog", str(error))
            return
        self._show(depths)
        work = depths[self._work]
        if session is self._session() and (work is None or work.consumers == 0):
            self._metrics.poll_errors.inc()
            session.end("watchdog", f"the broker knows no consumer on {self._work}")

    def _show(self, depths: Mapping[str, Depth | None]) -> None:
        queue = self._metrics.queue
        for role, names in self._roles.items():
            there = [depth for name in names if (depth := depths[name]) is not None]
            self._metrics.ready.labels(queue, role).set(sum(depth.ready for depth in there))
            self._metrics.consumers.labels(queue, role).set(sum(depth.consumers for depth in there))
        self._metrics.poll_success.set(time.time())
