"""One delivery of a key at a time in this process; the others of that key wait in line, in order."""

import asyncio
from collections.abc import Hashable


class KeyedTurns:
    """`async with turns.turn(key)`."""

    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Future[None]] = {}

    def turn(self, key: Hashable) -> "Turn":
        return Turn(self._last, key)


class Turn:
    """Who is cancelled in the line passes its place on when those before it are done."""

    __slots__ = ("_before", "_key", "_last", "_mine")

    def __init__(self, last: dict[Hashable, asyncio.Future[None]], key: Hashable) -> None:
        self._last = last
        self._key = key

    async def __aenter__(self) -> None:
        self._before = self._last.get(self._key)
        self._mine = self._last[self._key] = asyncio.get_running_loop().create_future()
        if self._before is not None:
            try:
                await asyncio.shield(self._before)
            except asyncio.CancelledError:
                self._leave()
                raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._before is None or self._before.done():
            self._pass_on()
        else:
            self._before.add_done_callback(lambda _: self._pass_on())

    def _pass_on(self) -> None:
        self._mine.set_result(None)
        if self._last.get(self._key) is self._mine:
            del self._last[self._key]
