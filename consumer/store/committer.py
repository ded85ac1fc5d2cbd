"""Group commit: while one batch is in flight the next one collects.

There is no timer. An item that finds the store idle goes almost at once and alone; under load the batches grow by
themselves to what arrives during one round trip.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from consumer.core.errors import StoreRefused, StoreUnavailable

BATCH_LIMIT = 256
TURNS, QUIET = 24, 5
"""Turns of the event loop before a batch is closed, at most, and in a row without anything new: what is ready now
shares it. Under load that makes batches three times as large, and when idle it costs some tens of microseconds."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Committer(Generic[Item, Answer]):
    """`identity` names the row that an item is about: a batch never holds two items about the same row."""

    def __init__(
        self,
        commit: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        identity: Callable[[Item], Hashable],
        limit: int = BATCH_LIMIT,
    ) -> None:
        self._commit = commit
        self._identity = identity
        self._limit = limit
        self._waiting: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._committing: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, item: Item) -> Answer:
        """Return the item's own answer once its batch is committed; a failed batch fails each of its callers.

        A batch that the store refuses is halved until the guilty item is alone, so that it fails nobody else.
        """
        if self._closed:
            raise StoreUnavailable("the store is closed: it takes nothing more")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._committing is None:
            self._committing = asyncio.create_task(self._commit_all(), name="store committer")
        return await answer

    async def close(self) -> None:
        """Take nothing more, and return when everything that was taken is answered."""
        self._closed = True
        if self._committing is not None:
            await self._committing

    async def _commit_all(self) -> None:
        try:
            while self._waiting:
                await self._let_others_join()
                if batch := self._next_batch():
                    await self._commit_batch(batch)
        finally:
            self._committing = None

    async def _let_others_join(self) -> None:
        quiet = 0
        for _ in range(TURNS):
            before = len(self._waiting)
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == before else 0
            if quiet == QUIET:
                return

    async def _commit_batch(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._commit([item for item, _ in batch])
        except StoreRefused as error:
            await self._commit_halves(batch, error)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the callers must hear of it
            for _, waiter in batch:
                _fail(waiter, error)
            return
        for (_, waiter), answer in zip(batch, answers, strict=True):
            if not waiter.done():
                waiter.set_result(answer)

    async def _commit_halves(self, batch: list[tuple[Item, asyncio.Future[Answer]]], error: StoreRefused) -> None:
        if len(batch) == 1:
            _fail(batch[0][1], error)
            return
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            await self._commit_batch(half)

    def _next_batch(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        batch: dict[Hashable, tuple[Item, asyncio.Future[Answer]]] = {}
        later: list[tuple[Item, asyncio.Future[Answer]]] = []
        while self._waiting and len(batch) < self._limit:
            item, answer = self._waiting.popleft()
            if answer.cancelled():
                continue
            identity = self._identity(item)
            if identity in batch:
                later.append((item, answer))
            else:
                batch[identity] = (item, answer)
        self._waiting.extendleft(reversed(later))
        return list(batch.values())


def _fail(waiter: asyncio.Future[Answer], error: Exception) -> None:
    """Each caller gets its own exception: a shared one would collect all their tracebacks."""
    if not waiter.done():
        failure = StoreRefused(str(error)) if isinstance(error, StoreRefused) else StoreUnavailable(str(error))
        failure.__cause__ = error
        waiter.set_exception(failure)
