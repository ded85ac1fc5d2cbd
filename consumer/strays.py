"""Takes home what came out of the delay queues while our work queue was not there: deleted, unbound, not yet made."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from consumer.core.errors import BrokerUnavailable, TopologyError
from consumer.core.job import Message
from consumer.core.parcels import Copier
from consumer.core.ports import Chance, Publisher
from consumer.waiting import told

EVERY = 60.0
"""Seconds between two looks, on average."""
SOON = 3.0
"""Seconds from the first look at a session to the next: for what another daemon had in hand, or was on its way."""
SHARE = 20
"""At most one part in so many of the time goes into looking, however much there is of other queues."""
SHOWN = 5
"""Queues that a log line names at most."""


class Depth(Protocol):
    @property
    def ready(self) -> int: ...


class Found(Protocol):
    @property
    def home(self) -> int: ...
    @property
    def left(self) -> Mapping[str, int]: ...
    @property
    def failure(self) -> str | None: ...


class Session(Protocol):
    @property
    def ended(self) -> asyncio.Future[Any]: ...
    async def depths(self, queues: Sequence[str]) -> Mapping[str, Depth | None]: ...
    async def bring_home(self, publish: Callable[[Message], Awaitable[None]]) -> Found: ...


class Strays:
    def __init__(self, publisher: Publisher, copier: Copier, chance: Chance) -> None:
        self._publisher = publisher
        self._copier = copier
        self._chance = chance
        self._stray = copier.topology.ladder.stray
        self._session: Session | None = None
        self._opened = asyncio.Event()
        self._left: Mapping[str, int] = {}
        self._log = structlog.get_logger("consumer.strays")

    def opened(self, session: Session) -> None:
        """Everything is declared: what strayed meanwhile can go home."""
        self._session = session
        self._opened.set()

    async def keep(self) -> None:
        """Look at the start of each session, and then from time to time, until cancelled."""
        now = asyncio.get_running_loop().time
        new = await self._is_opened_within(EVERY)
        while True:
            began = now()
            await self.look()
            pause = SOON if new else max(EVERY, SHARE * (now() - began))
            new = await self._is_opened_within(pause * (0.5 + self._chance()))

    async def _is_opened_within(self, seconds: float) -> bool:
        """Wait for the next session; drawn waits let replicas that started together drift apart."""
        opened = await told(self._opened, seconds)
        self._opened.clear()
        return opened

    async def look(self) -> None:
        """One look, if there is anything. A broker that is away ends it: the next session looks again."""
        session = self._session
        if session is None or session.ended.done():
            return
        try:
            depth = (await session.depths([self._stray]))[self._stray]
            if depth is not None and depth.ready:
                self._tell(await session.bring_home(self._publish))
        except (BrokerUnavailable, TopologyError) as error:
            self._log.warning("strays not looked through, tried again later", error=str(error))

    async def _publish(self, message: Message) -> None:
        await self._publisher.publish(self._copier.home(message))

    def _tell(self, found: Found) -> None:
        if found.home:
            self._log.warning("strays brought home", queue=self._copier.topology.work_queue, count=found.home)
        if found.failure:
            self._log.warning("strays not brought home, tried again later", error=found.failure)
        if found.left and found.left != self._left:
            most = sorted(found.left.items(), key=lambda item: -item[1])[:SHOWN]
            self._log.warning("copies wait for queues that were not there", queues=dict(most))
        self._left = found.left
