"""Looking at the index of dead letters: the same in every SQL database, once somebody can ask it."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

from consumer.core.letter_index import Group, Wanted
from consumer.core.letters import Entry, Letter
from consumer.store.letters_sql import Dialect, Query, to_entry, to_group, to_letter


class Looks(ABC):
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    @abstractmethod
    async def _ask(self, query: Query) -> list[Any]:
        """The records, by the names of their columns and by their numbers."""

    async def page(self, wanted: Wanted, limit: int, *, after: str | None, oldest_first: bool) -> list[Entry]:
        query = self._dialect.page(wanted, limit, after, oldest_first=oldest_first)
        return [to_entry(record) for record in await self._ask(query)]

    async def groups(self, wanted: Wanted, limit: int) -> list[Group]:
        return [to_group(record) for record in await self._ask(self._dialect.groups(wanted, limit))]

    async def count(self, wanted: Wanted) -> int:
        [[count]] = await self._ask(self._dialect.count(wanted))
        return int(count)

    async def letters(self, ids: Collection[str]) -> list[Letter]:
        return [to_letter(record) for record in await self._ask(self._dialect.letters(ids))]
