"""What has been run is not run again: a result waits in memory for a store that is away."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from consumer.core.claim import Claim, ClaimRequest
from consumer.core.errors import StoreUnavailable
from consumer.core.letters import Letter
from consumer.core.policy import RetryPolicy
from consumer.core.ports import Chance, Store
from consumer.core.retry import wait_seconds
from consumer.core.row import Change, Ref, Status
from consumer.waiting import told

BETWEEN_TRIES = RetryPolicy(base=0.2, cap=5.0)

T = TypeVar("T")


class HoldingStore:
    """The pipeline's view of the store: what an outcome asks of it waits until it is done, or until `give_up`.

    Giving a claim back is never waited for: the store recognises a claim that we lost by its owner.
    `posted` hears of every result that left follow-ups in the outbox.
    """

    def __init__(
        self,
        store: Store,
        tell: Callable[[StoreUnavailable], None],
        chance: Chance,
        posted: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._tell = tell
        self._chance = chance
        self._posted = posted
        self._given_up = asyncio.Event()

    def give_up(self) -> None:
        """From now on an outcome that can't be written is lost, and its delivery goes back to the broker."""
        self._given_up.set()

    async def write(self, change: Change) -> bool:
        if change.status is Status.PENDING:
            return await self._store.write(change)
        written = await self._held(lambda: self._store.write(change))
        if written and change.follow_ups:
            self._posted()
        return written

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        return await self._held(lambda: self._store.renew(refs, lease))

    async def bury(self, letter: Letter) -> None:
        await self._held(lambda: self._store.bury(letter))

    async def _held(self, write: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await write()
            except StoreUnavailable as error:
                failures += 1
                if self._given_up.is_set():
                    raise
                self._tell(error)
                await told(self._given_up, wait_seconds(BETWEEN_TRIES, failures, None, self._chance))

    async def claim(self, request: ClaimRequest) -> Claim:
        return await self._store.claim(request)
