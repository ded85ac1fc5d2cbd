"""How much memory the kinds need, learned from their runs, and whether a run fits beside others. Pure."""

from collections.abc import Iterable

_FORGET = 64
"""A need falls by this part of the difference with each run that needed less."""


class Needs:
    """`room`: bytes that all runs together may need; 0 for any number. A kind that never ran counts for its share."""

    def __init__(self, room: int, places: int) -> None:
        self._room = room
        self._places = places
        self._share = room // places
        self._known: dict[str, int] = {}
        self._largest = 0

    def shrink(self, room: int) -> None:
        """By what all of them share already."""
        if self._room:
            self._room = max(self._room - room, 1)
            self._share = self._room // self._places

    @property
    def scarce(self) -> bool:
        """False while any runs fit together, so that nobody needs to reckon."""
        return self._room > 0 and self._largest * self._places > self._room

    def of(self, kind: str) -> int:
        return self._known.get(kind, self._share)

    def learn(self, kind: str, need: int) -> None:
        """What one run of that kind needed at its peak."""
        known = self._known.get(kind, 0)
        if need >= known:
            self._known[kind] = need
            self._largest = max(self._largest, need)
        else:
            self._known[kind] = known - (known - need) // _FORGET
            if known == self._largest:
                self._largest = max(self._known.values())

    def fit(self, taken: Iterable[int], need: int) -> bool:
        """Beside others. One alone always may run: its own limit is what ends it, if anything must."""
        together = sum(taken)
        return not together or together + need <= self._room
