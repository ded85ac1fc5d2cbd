"""Ends runs whose jobs were cancelled, wherever that was said: the store knows, and is asked every second."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from consumer.core.errors import StoreUnavailable
from consumer.core.ports import Store
from consumer.core.row import Ref

EVERY = 1.0
"""Seconds. Shorter runs are never asked about: they are over before anybody could end them."""


class Held(Protocol):
    @property
    def held(self) -> frozenset[Ref]:
        """The claims of this process."""
        ...


class Canceller:
    """`end` ends the run of a kind and a key in the pool, and says whether it began to."""

    def __init__(self, store: Store, leases: Held, end: Callable[[str, str], bool]) -> None:
        self._store = store
        self._leases = leases
        self._end = end
        self._held_before: frozenset[Ref] = frozenset()
        self._log = structlog.get_logger("consumer.cancelling")

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self.look()

    async def look(self) -> None:
        """Ask about the claims that were held at the last look already."""
        held = self._leases.held
        lasting, self._held_before = held & self._held_before, held
        try:
            cancelled = await self._store.cancelled(sorted(lasting, key=lambda ref: (ref.kind, ref.key)))
        except StoreUnavailable as error:
            self._log.debug("nobody knows whether running jobs were cancelled", error=str(error))
            return
        for ref in cancelled:
            if self._end(ref.kind, ref.key):
                self._log.info("ending a run: its job was cancelled", kind=ref.kind, key=ref.key)
