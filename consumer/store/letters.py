"""The index of dead letters that the daemon and the commands see: burials in batches, everything observed."""

from collections.abc import Awaitable, Collection, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from consumer.core.errors import StoreRefused
from consumer.core.letter_index import Group, KnownLetters, Wanted
from consumer.core.letters import Entry, Letter, State
from consumer.store.committer import Committer

BATCH_LIMIT = 64
"""Whole letters, bodies included, that one transaction carries at most."""

T = TypeVar("T")


class LetterBackend(KnownLetters, Protocol):
    """One database. A batch never names a letter twice."""

    async def bury(self, letters: Sequence[Letter]) -> None: ...


class Observed(Protocol):
    async def __call__(self, operation: str, batch_size: int, answer: Awaitable[T]) -> T: ...


class GroupedLetters:
    def __init__(self, backend: LetterBackend, observed: Observed) -> None:
        self._backend = backend
        self._observed = observed
        self._burials = Committer(self._bury_batch, lambda letter: letter.id, BATCH_LIMIT)

    async def bury(self, letter: Letter) -> None:
        """A letter that the store can't hold is in the queue all the same, and must not stop anybody."""
        with suppress(StoreRefused):
            await self._burials.submit(letter)

    async def page(self, wanted: Wanted, limit: int, *, after: str | None, oldest_first: bool) -> Sequence[Entry]:
        found = self._backend.page(wanted, limit, after=after, oldest_first=oldest_first)
        return await self._observed("find", limit, found)

    async def groups(self, wanted: Wanted, limit: int) -> Sequence[Group]:
        return await self._observed("find", limit, self._backend.groups(wanted, limit))

    async def count(self, wanted: Wanted) -> int:
        return await self._observed("find", 1, self._backend.count(wanted))

    async def letters(self, ids: Collection[str]) -> Sequence[Letter]:
        return await self._observed("find", len(ids), self._backend.letters(ids))

    async def mark(self, ids: Collection[str], state: State, at: int) -> frozenset[str]:
        return await self._observed("bury", len(ids), self._backend.mark(ids, state, at))

    async def prune(self, age: int, limit: int) -> int:
        return await self._observed("prune", limit, self._backend.prune(age, limit))

    async def close(self) -> None:
        await self._burials.close()

    async def _bury_batch(self, letters: Sequence[Letter]) -> Sequence[None]:
        await self._observed("bury", len(letters), self._backend.bury(letters))
        return [None] * len(letters)
