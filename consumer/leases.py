"""Keeps the claims that this process holds alive, in one batch every third of a lease."""

import asyncio

import structlog

from consumer.core.errors import StoreUnavailable
from consumer.core.ports import Store
from consumer.core.row import Ref


class LeaseKeeper:
    """`lease` in milliseconds."""

    def __init__(self, store: Store, lease: int) -> None:
        self._store = store
        self._lease = lease
        self._held: set[Ref] = set()
        self._log = structlog.get_logger("consumer.leases")

    def hold(self, ref: Ref) -> None:
        self._held.add(ref)

    def drop(self, ref: Ref) -> None:
        self._held.discard(ref)

    @property
    def held(self) -> frozenset[Ref]:
        return frozenset(self._held)

    async def keep(self) -> None:
        """Renew until cancelled. A renewal that fails is tried again at the next turn; three fit into a lease."""
        while True:
            await asyncio.sleep(self._lease / 3000)
            if not self._held:
                continue
            try:
                lost = await self._store.renew(sorted(self._held, key=lambda ref: (ref.kind, ref.key)), self._lease)
            except StoreUnavailable as error:
                self._log.warning("leases not renewed", error=str(error), held=len(self._held))
                continue
            for ref in lost & self._held:
                self._log.warning("claim lost, its result will not count", kind=ref.kind, key=ref.key)
