"""The places at the children, given to those who wait for one in the order in which they came."""

import asyncio
from collections import deque


class Places:
    def __init__(self) -> None:
        self.capacity = 0
        self._taken = 0
        self._open = True
        self._takers: deque[asyncio.Future[bool]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._takers)

    async def take(self) -> bool:
        """Wait for a place. False when intake was stopped meanwhile."""
        if not self._open:
            return False
        if not self._takers and self._taken < self.capacity:
            self._taken += 1
            return True
        taker: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            return await taker
        except asyncio.CancelledError:
            if not taker.cancelled() and taker.result():  # it was given a place that it can't use any more
                self.give_back()
            elif taker in self._takers:
                self._takers.remove(taker)
            raise

    def give_back(self) -> None:
        self._taken -= 1
        self._grant()

    def resize(self, capacity: int) -> None:
        """Fewer places than are taken is fine: none is given until there are more."""
        self.capacity = capacity
        self._grant()

    def close(self) -> None:
        self._open = False
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(False)

    def reopen(self) -> None:
        self._open = True

    def _grant(self) -> None:
        while self._takers and self._taken < self.capacity:
            taker = self._takers.popleft()
            if not taker.done():
                self._taken += 1
                taker.set_result(True)
