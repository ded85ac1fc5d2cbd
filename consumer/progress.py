"""What running jobs say of themselves, written to the store once a second: the latest of each job."""

import asyncio

import structlog

from consumer.cancelling import Held
from consumer.core.errors import StoreUnavailable
from consumer.core.ports import Store
from consumer.core.row import Mark

EVERY = 1.0
"""Seconds between two writes, whatever jobs say meanwhile."""

Name = tuple[str, str]


class Progress:
    def __init__(self, store: Store, leases: Held) -> None:
        self._store = store
        self._leases = leases
        self._latest: dict[Name, tuple[float, str]] = {}
        self._log = structlog.get_logger("consumer.progress")

    def progressed(self, kind: str, key: str, fraction: float, note: str) -> None:
        self._latest[kind, key] = (min(max(0.0, fraction), 1.0), note)

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await self.write()

    async def write(self) -> None:
        """What can't be written now is written next time, unless the job has said more, or is over."""
        latest, self._latest = self._latest, {}
        if not latest:
            return
        refs = {(ref.kind, ref.key): ref for ref in self._leases.held}
        running = {name: said for name, said in latest.items() if name in refs}
        try:
            await self._store.progress([Mark(refs[name], *said) for name, said in sorted(running.items())])
        except StoreUnavailable as error:
            self._log.debug("progress not written", error=str(error))
            self._latest = running | self._latest
