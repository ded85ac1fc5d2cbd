"""A few PostgreSQL sessions, lent to one user at a time.

The driver has a pool of its own, which costs as much CPU as the statement that it lends a session for
(100 of 260 µs for a claim and a result), because it resets, shields and times each loan. Ours needs none of
that: nothing is ever left in a session, and a session that ends a loan in any doubt is thrown away.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

from consumer.store.postgres_errors import DRIVER_ERRORS, is_doubtful, trouble

LIMIT = 4
WAIT_SECONDS = 5.0
CLOSE_SECONDS = 2.0


class Sessions:
    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], place: str) -> None:
        self._connect = connect
        self._place = place
        self._idle: list[asyncpg.Connection] = []
        self._free = asyncio.Semaphore(LIMIT)
        self._users = 0
        self._returned = asyncio.Event()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[asyncpg.Connection]:
        """Raise StoreUnavailable where the database can't be reached, and for what it says during the loan."""
        try:
            async with asyncio.timeout(WAIT_SECONDS if self._free.locked() else None):
                await self._free.acquire()
            self._users += 1
            try:
                session = self._take_idle() or await self._one_more()
                try:
                    yield session
                except BaseException as error:
                    self._take_back_after(error, session)
                    raise
                self._idle.append(session)
            finally:
                self._users -= 1
                self._returned.set()
                self._free.release()
        except DRIVER_ERRORS as error:
            raise trouble(self._place, error) from error

    async def close(self) -> None:
        while self._idle:
            try:
                await self._idle.pop().close(timeout=CLOSE_SECONDS)
            except DRIVER_ERRORS:
                continue  # it is gone, which is all that we wanted

    async def _one_more(self) -> asyncpg.Connection:
        """A new one; or where the server has no more to give, the next that another user of ours gives back."""
        while True:
            self._returned.clear()
            try:
                return await self._connect()
            except asyncpg.TooManyConnectionsError:
                if not (self._idle or await self._is_one_returned()):
                    raise
            if (session := self._take_idle()) is not None:
                return session

    async def _is_one_returned(self) -> bool:
        try:
            async with asyncio.timeout(WAIT_SECONDS if self._users > 1 else 0):
                return await self._returned.wait()
        except TimeoutError:
            return False

    def _take_idle(self) -> asyncpg.Connection | None:
        while self._idle:
            session = self._idle.pop()
            if not session.is_closed():
                return session
        return None

    def _take_back_after(self, error: BaseException, session: asyncpg.Connection) -> None:
        """Only a plain refusal of a statement leaves a session that can be trusted."""
        if isinstance(error, asyncpg.PostgresError) and not is_doubtful(error):
            self._idle.append(session)
            return
        session.terminate()
        if is_doubtful(error):
            # After a failover or a restart the idle ones lead to the same place.
            while self._idle:
                self._idle.pop().terminate()
