"""Cooling down, shared: what one replica finds out about a dependency, all learn from the store within a second."""

import asyncio
from typing import TYPE_CHECKING

import structlog

from consumer.core.cooling import OVER, Cooling
from consumer.core.errors import StoreUnavailable
from consumer.core.outcome import Outcome
from consumer.core.ports import Clock, Store
from consumer.metrics import Metrics
from consumer.waiting import told

if TYPE_CHECKING:
    from consumer.core.cooldown import Cooldown

EVERY = 1.0
"""Seconds between two looks at what the others found out."""


class SharedCooling:
    """The pipeline asks and tells it without waiting; `keep` talks to the store. Without one, each is on its own."""

    def __init__(self, cooling: Cooling, store: Store, metrics: Metrics, clock: Clock) -> None:
        self._cooling = cooling
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self._news: dict[str, Cooldown] = {}
        self._told = asyncio.Event()
        self._log = structlog.get_logger("consumer.cooling")
        self.due = cooling.due
        self.enter = cooling.enter

    def heard(self, kind: str, outcome: Outcome, now: int) -> None:
        news = self._cooling.heard(kind, outcome, now)
        if news is None:
            return
        self._news[kind] = news
        self._told.set()
        self._show()
        if news.until == OVER:
            self._log.info("kind is up again", kind=kind, why=news.why)
        else:
            self._log.warning("kind cools down", kind=kind, why=news.why, seconds=(news.until - now) / 1000)

    async def keep(self) -> None:
        """Tell the store and learn from it, until cancelled."""
        while True:
            self._told.clear()
            try:
                await self._share()
                self._cooling.learn(await self._store.cooldowns(), self._clock())
            except StoreUnavailable:  # the news stay here; whoever writes results says that the store is away
                await asyncio.sleep(EVERY)
            else:
                self._show()
                await told(self._told, EVERY)

    async def _share(self) -> None:
        while self._news:
            kind, news = next(iter(self._news.items()))
            await (self._store.warm(kind) if news.until == OVER else self._store.cool(news))
            if self._news.get(kind) is news:
                del self._news[kind]

    def _show(self) -> None:
        for kind, cools in self._cooling.states().items():
            self._metrics.kind_cools(kind, cools)
