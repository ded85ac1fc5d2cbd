"""The outbox of the in-memory store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from consumer.core.outbox import Outgoing, first_try, next_try
from consumer.core.row import Change
from consumer.store.change import outgoing


@dataclass(frozen=True, slots=True)
class _Kept:
    outgoing: Outgoing
    take_at: int
    tries: int = 0


class MemoryOutbox:
    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}
        self._numbers = count(1)

    def post(self, change: Change, now: int) -> None:
        for follow_up in change.follow_ups:
            number = next(self._numbers)
            kept = replace(outgoing(follow_up, change, now), id=number)
            self._kept[number] = _Kept(kept, first_try(follow_up, now))

    @property
    def next_at(self) -> int | None:
        """When something can be taken, in epoch ms; None where nothing ever can."""
        return min((kept.take_at for kept in self._kept.values()), default=None)

    def take(self, limit: int, lease: int, now: int) -> list[Outgoing]:
        ready = sorted(
            (kept for kept in self._kept.values() if kept.take_at <= now),
            key=lambda kept: (kept.take_at, kept.outgoing.id),
        )[:limit]
        for kept in ready:
            again = next_try(now, lease, kept.tries)
            self._kept[kept.outgoing.id] = replace(kept, take_at=again, tries=kept.tries + 1)
        return [kept.outgoing for kept in ready]

    def unsent(self, now: int) -> int:
        return sum(kept.tries > 0 or kept.take_at <= now for kept in self._kept.values())

    def sent(self, ids: Sequence[int]) -> None:
        for number in ids:
            self._kept.pop(number, None)
