"""Who goes next is a choice: coroutines stand at gates, and a string of bytes says which gate opens, and how.

The event loop is asyncio's own, with a clock that moves when it is told: the product's timers work too.
"""

import asyncio
import selectors
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
FINE = "fine"
TURNS = 5
"""Turns of the loop after which all that can go on has gone on."""


class Deaf(selectors.SelectSelector):
    """Nothing comes from outside, so nothing is asked for."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """Sleeps of any length end when the clock is moved."""

    now = 0.0

    def __init__(self) -> None:
        super().__init__(Deaf())

    def time(self) -> float:
        return self.now


class Over(Exception):
    """There are no choices left."""


class Choices:
    """Byte by byte; 0 is always the harmless choice, so that a failing example shrinks to a simple one."""

    def __init__(self, given: bytes) -> None:
        self._given = iter(given)

    def number(self, count: int) -> int:
        """Return a number below `count`, or raise Over."""
        for byte in self._given:
            return byte % count
        raise Over

    def of(self, options: Sequence[T]) -> T:
        return options[self.number(len(options))]


@dataclass(eq=False)
class Gate:
    """`faults` are the ways, other than fine, in which what waits here may go on."""

    owner: str
    what: str
    faults: tuple[str, ...]
    word: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Gates:
    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self.waiting: list[Gate] = []
        self.dead: list[str] = []

    async def reach(self, owner: str, what: str, *faults: str) -> str:
        """Wait here until the scheduler lets us go on; return how."""
        gate = Gate(owner, what, faults)
        if owner not in self.dead:
            self.waiting.append(gate)
        return await gate.word

    def open(self, gate: Gate, word: str = FINE) -> None:
        self._told(f"{gate.owner}: {gate.what} {word}")
        self.waiting.remove(gate)
        gate.word.set_result(word)

    def close(self, owner: str, keep: Callable[[Gate], bool]) -> None:
        """Nobody of this owner goes on, but for what is on its way already."""
        self.dead.append(owner)
        self.waiting = [gate for gate in self.waiting if gate.owner != owner or keep(gate)]


async def turns() -> None:
    """Let everybody go on who can."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
