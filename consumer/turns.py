"""One delivery of a key at a time in this process; the others of that key wait in line, in order."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class KeyedTurns:
    def __init__(self) -> None:
        self._last: dict[Hashable, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[None]:
        """Hold the key's turn. Who is cancelled in the line passes its place on when those before it are done."""
        before = self._last.get(key)
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._last[key] = mine
        try:
            if before is not None:
                await asyncio.shield(before)
            yield
        finally:
            if before is None or before.done():
                self._pass_on(key, mine)
            else:
                before.add_done_callback(lambda _: self._pass_on(key, mine))

    def _pass_on(self, key: Hashable, mine: asyncio.Future[None]) -> None:
        mine.set_result(None)
        if self._last.get(key) is mine:
            del self._last[key]
