"""The index of dead letters, as commands ask it: looking reads the index alone, and never touches the queue."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from consumer.core.letters import Entry, Letter, State


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which letters of a queue; what is None doesn't matter. `since` and `until` (epoch ms) are about `dead_at`.

    `redriven`: at most so often before. Every database says `matches` in its own words; the contract tests compare.
    """

    queue: str
    state: State = State.DEAD
    ids: frozenset[str] | None = None
    code: str | None = None
    kind: str | None = None
    key: str | None = None
    error_type: str | None = None
    group: str | None = None
    since: int | None = None
    until: int | None = None
    redriven: int | None = None

    def matches(self, entry: Entry) -> bool:
        return (
            (entry.queue, entry.state) == (self.queue, self.state)
            and (self.ids is None or entry.id in self.ids)
            and all(
                wanted is None or wanted == found
                for wanted, found in (
                    (self.code, entry.code),
                    (self.kind, entry.kind),
                    (self.key, entry.key),
                    (self.error_type, entry.error_type),
                    (self.group, entry.group),
                )
            )
            and (self.since is None or entry.dead_at >= self.since)
            and (self.until is None or entry.dead_at < self.until)
            and (self.redriven is None or entry.generation <= self.redriven)
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one kind of error. `example` is the one that died last."""

    count: int
    first_at: int
    last_at: int
    example: Entry


class KnownLetters(Protocol):
    """What is done with letters that are known."""

    async def page(self, wanted: Wanted, limit: int, *, after: str | None, oldest_first: bool) -> Sequence[Entry]:
        """Those that follow the letter `after`, by time of death."""
        ...

    async def groups(self, wanted: Wanted, limit: int) -> Sequence[Group]:
        """The largest first."""
        ...

    async def count(self, wanted: Wanted) -> int: ...

    async def letters(self, ids: Collection[str]) -> Sequence[Letter]:
        """Those that are known, oldest first, whatever became of them."""
        ...

    async def mark(self, ids: Collection[str], state: State, at: int) -> frozenset[str]:
        """Note what became of letters; return those that are known."""
        ...

    async def prune(self, age: int, limit: int) -> int:
        """Forget at most `limit` letters that are gone from the queue since more than `age` ms."""
        ...


class LetterIndex(KnownLetters, Protocol):
    """Raises StoreUnavailable where the store can't answer. A letter that it can't hold is left out."""

    async def bury(self, letter: Letter) -> None:
        """Note a letter, or a newer word about one that is known."""
        ...
