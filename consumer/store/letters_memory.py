"""The index of dead letters in memory: the twin of the databases', for tests and for trying things out."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import fields, replace

from consumer.core.letter_index import Group, Wanted
from consumer.core.letters import Entry, Letter, State
from consumer.core.ports import Clock


class MemoryLetters:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.known: dict[str, Letter] = {}

    async def bury(self, letters: Sequence[Letter]) -> None:
        for letter in letters:
            before = self.known.get(letter.id)
            if before is None or letter.state_at > before.state_at:
                self.known[letter.id] = letter

    async def page(self, wanted: Wanted, limit: int, *, after: str | None, oldest_first: bool) -> list[Entry]:
        found = sorted(self._matching(wanted), key=_place, reverse=not oldest_first)
        if after is not None:
            start = self.known.get(after)
            found = [entry for entry in found if start and (_place(entry) > _place(start)) is oldest_first]
            found = [entry for entry in found if entry.id != after]
        return [_entry(letter) for letter in found[:limit]]

    async def groups(self, wanted: Wanted, limit: int) -> list[Group]:
        members: defaultdict[str, list[Letter]] = defaultdict(list)
        for letter in sorted(self._matching(wanted), key=_place):
            members[letter.group].append(letter)
        groups = [Group(len(same), same[0].dead_at, same[-1].dead_at, _entry(same[-1])) for same in members.values()]
        return sorted(groups, key=lambda group: (-group.count, -group.last_at, group.example.id))[:limit]

    async def count(self, wanted: Wanted) -> int:
        return len(self._matching(wanted))

    async def letters(self, ids: Collection[str]) -> list[Letter]:
        return sorted((self.known[name] for name in set(ids) if name in self.known), key=_place)

    async def mark(self, ids: Collection[str], state: State, at: int) -> frozenset[str]:
        there = frozenset(ids) & self.known.keys()
        for name in there:
            letter = self.known[name]
            self.known[name] = replace(letter, state=state, state_at=max(letter.state_at, at))
        return there

    async def prune(self, age: int, limit: int) -> int:
        latest = self._clock() - age
        gone = [x.id for x in self.known.values() if x.state is not State.DEAD and x.state_at < latest][:limit]
        for name in gone:
            del self.known[name]
        return len(gone)

    def _matching(self, wanted: Wanted) -> list[Letter]:
        return [letter for letter in self.known.values() if wanted.matches(letter)]


def _place(entry: Entry) -> tuple[int, str]:
    return entry.dead_at, entry.id


def _entry(letter: Letter) -> Entry:
    return Entry(**{field.name: getattr(letter, field.name) for field in fields(Entry)})
