"""The store that the pipeline sees: group commit, observation and one kind of error over any backend."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from time import perf_counter
from typing import Protocol, TypeVar

from consumer.core.claim import Claim, ClaimRequest
from consumer.core.cooldown import Cooldown
from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.core.letters import Letter
from consumer.core.outbox import Outgoing
from consumer.core.ports import Rows
from consumer.core.row import Change, Mark, Ref, Row, Status
from consumer.store.committer import Committer
from consumer.store.letters import GroupedLetters, LetterBackend

Observe = Callable[[str, str, float, int], None]
"""Told of every exchange with the database: operation, "ok" or "error", seconds, items in the batch."""

T = TypeVar("T")


class Backend(Rows, Protocol):
    """One database. Batches never name a row twice; answers come in the order of the batch."""

    @property
    def letters(self) -> LetterBackend: ...

    async def claim(self, requests: Sequence[ClaimRequest]) -> Sequence[Claim]: ...

    async def write(self, changes: Sequence[Change]) -> Sequence[bool]: ...


def unobserved(operation: str, result: str, seconds: float, batch_size: int) -> None:
    """What a store is told to observe when nobody watches: nothing."""


class GroupedStore:
    def __init__(self, backend: Backend, observe: Observe = unobserved) -> None:
        self._backend = backend
        self._observe = observe
        self._claims = Committer(self._claim_batch, lambda request: (request.kind, request.key))
        self._writes = Committer(self._write_batch, lambda change: (change.ref.kind, change.ref.key))
        self.letters = GroupedLetters(backend.letters, self._observed)

    async def claim(self, request: ClaimRequest) -> Claim:
        return await self._claims.submit(request)

    async def write(self, change: Change) -> bool:
        try:
            return await self._writes.submit(change)
        except StoreRefused as error:
            if change.result is not None:
                raise
            # All else in a change is ours, so the fault is in the table, which a person may have altered.
            raise StoreUnavailable(str(error)) from error

    async def bury(self, letter: Letter) -> None:
        await self.letters.bury(letter)

    async def renew(self, refs: Sequence[Ref], lease: int) -> frozenset[Ref]:
        if not refs:
            return frozenset()
        return await self._observed("renew", len(refs), self._backend.renew(refs, lease))

    async def find(self, kind: str, key: str) -> Row | None:
        return await self._observed("find", 1, self._backend.find(kind, key))

    async def cancel(self, kind: str, key: str, by: str) -> Row:
        return await self._observed("cancel", 1, self._backend.cancel(kind, key, by))

    async def cancelled(self, refs: Sequence[Ref]) -> frozenset[Ref]:
        if not refs:
            return frozenset()
        return await self._observed("cancel", len(refs), self._backend.cancelled(refs))

    async def progress(self, marks: Sequence[Mark]) -> None:
        if marks:
            await self._observed("progress", len(marks), self._backend.progress(marks))

    async def submit(self, row: Row) -> Row:
        return await self._observed("submit", 1, self._backend.submit(row))

    async def stuck(self, grace: int) -> Mapping[Status, int]:
        return await self._observed("sweep", 1, self._backend.stuck(grace))

    async def overdue(self, kinds: Collection[str], grace: int, limit: int) -> Sequence[Row]:
        return await self._observed("sweep", limit, self._backend.overdue(kinds, grace, limit))

    async def swept(self, refs: Sequence[Ref]) -> None:
        if refs:
            await self._observed("sweep", len(refs), self._backend.swept(refs))

    async def prune(self, age: int, limit: int) -> int:
        return await self._observed("prune", limit, self._backend.prune(age, limit))

    async def outbox(self, limit: int, lease_ms: int) -> Sequence[Outgoing]:
        return await self._observed("outbox", limit, self._backend.outbox(limit, lease_ms))

    async def sent(self, ids: Sequence[int]) -> None:
        if ids:
            await self._observed("outbox", len(ids), self._backend.sent(ids))

    async def unsent(self) -> int:
        return await self._observed("sweep", 1, self._backend.unsent())

    async def cool(self, cooldown: Cooldown) -> None:
        await self._observed("cooldown", 1, self._backend.cool(cooldown))

    async def warm(self, kind: str) -> None:
        await self._observed("cooldown", 1, self._backend.warm(kind))

    async def cooldowns(self) -> Sequence[Cooldown]:
        return await self._observed("cooldown", 1, self._backend.cooldowns())

    async def probe(self) -> None:
        await self._observed("probe", 1, self._backend.probe())

    async def close(self) -> None:
        await self._claims.close()
        await self._writes.close()
        await self.letters.close()
        await self._backend.close()

    async def _claim_batch(self, requests: Sequence[ClaimRequest]) -> Sequence[Claim]:
        return await self._observed("claim", len(requests), self._backend.claim(requests))

    async def _write_batch(self, changes: Sequence[Change]) -> Sequence[bool]:
        return await self._observed("write", len(changes), self._backend.write(changes))

    async def _observed(self, operation: str, batch_size: int, answer: Awaitable[T]) -> T:
        started = perf_counter()
        result = "error"
        try:
            value = await answer
            result = "ok"
        except (StoreUnavailable, StoreRefused):
            raise
        except (UnicodeError, OverflowError) as error:
            raise StoreRefused(f"the store can't hold this data: {type(error).__name__}") from error
        except Exception as error:
            message = f"the store failed in {operation}: {type(error).__name__}, which is a bug of ours"
            raise StoreUnavailable(message) from error
        finally:
            self._observe(operation, result, perf_counter() - started, batch_size)
        return value
