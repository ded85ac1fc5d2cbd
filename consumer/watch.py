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
    @property
    def consumer(self) -> str | None:
        """Which consumer we should be to the broker now."""
        ...

    async def depths(self, queues: Sequence[str]) -> Mapping[str, Depth | None]: ...
    async def blocked(self) -> bool: ...
    def end(self, reason: str, detail: str) -> None: ...


class Watch:
    """`session` says which one lives now.

    A broker that is gone without a word is noticed within two heartbeats, one between two looks and one of waiting
    for its answer; the client's own heartbeat needs three.
    """

    def __init__(
        self,
        topology: Topology,
        metrics: Metrics,
        session: Callable[[], Session | None],
        heartbeat: float,
    ) -> None:
        self._metrics = metrics
        self._session = session
        self._heartbeat = heartbeat
        self._work = topology.work_queue
        self._roles = {
            "work": (topology.work_queue,),
            "dead": (topology.dead_queue,),
            "delay": tuple(topology.ladder.level(k) for k in range(topology.ladder.levels)),
            "stray": (topology.ladder.stray,),
        }
        self._log = structlog.get_logger("consumer.watch")

    async def keep(self) -> None:
        while True:
            session = self._session()
            if session is not None:
                await self.look(session)
            await asyncio.sleep(min(EVERY, self._heartbeat) if session is not None else SOON)

    async def look(self, session: Session) -> None:
        """One look; any doubt about the session ends it."""
        names = [name for queues in self._roles.values() for name in queues]
        consumer = session.consumer
        try:
            async with asyncio.timeout(self._heartbeat):
                depths = await session.depths(names)
            self._metrics.blocked.set(await session.blocked())
        except TimeoutError:
            self._doubt(session, f"the broker has not answered for {self._heartbeat:g} s")
        except BrokerUnavailable as error:
            self._doubt(session, str(error))
        else:
            self._show(depths)
            work = depths[self._work]
            should_be_there = consumer is not None and consumer == session.consumer
            if should_be_there and (work is None or work.consumers == 0):
                self._doubt(session, f"the broker knows no consumer on {self._work}")

    def _doubt(self, session: Session, why: str) -> None:
        self._metrics.poll_errors.inc()
        self._log.warning("the session is in doubt", why=why)
        session.end("watchdog", why)

    def _show(self, depths: Mapping[str, Depth | None]) -> None:
        queue = self._metrics.queue
        for role, names in self._roles.items():
            there = [depth for name in names if (depth := depths[name]) is not None]
            self._metrics.ready.labels(queue, role).set(sum(depth.ready for depth in there))
            self._metrics.consumers.labels(queue, role).set(sum(depth.consumers for depth in there))
        self._metrics.poll_success.set(time.time())
