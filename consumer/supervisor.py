"""Keeps us consuming: one session after the other, paused while something of ours is away."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from consumer.core.errors import (
    BrokerRefused,
    BrokerUnavailable,
    PublishFailed,
    SettingsError,
    StoreUnavailable,
    TopologyError,
    Unavailable,
)
from consumer.core.policy import RetryPolicy
from consumer.core.ports import Chance
from consumer.core.retry import wait_seconds

ABANDON = 1.0
"""Seconds that a session being opened gets to clean up when we stop."""
RECONNECT = RetryPolicy(base=0.2, cap=10.0)


class Session(Protocol):
    """One life of the connections to the broker."""

    @property
    def ended(self) -> asyncio.Future[Any]: ...
    async def depths(self, queues: Sequence[str]) -> Mapping[str, Any]: ...
    async def blocked(self) -> bool: ...
    async def cancel(self) -> None: ...
    async def close(self) -> None: ...
    def end(self, reason: str, detail: str) -> None: ...


class Intake(Protocol):
    """The pool's door: closed, waiting deliveries go back and unstarted jobs are withdrawn."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Listener(Protocol):
    """Is told what changes, for probes, metrics and the log."""

    def connected(self) -> None: ...
    def consuming(self) -> None: ...
    def paused(self, why: str) -> None: ...
    def session_ended(self, reason: str, detail: str) -> None: ...


class Supervisor:
    """`open_session` and `consume` are the broker's; `probe` proves that the store can be written to."""

    def __init__(
        self,
        open_session: Callable[[], Awaitable[Any]],
        consume: Callable[[Any], Awaitable[None]],
        probe: Callable[[], Awaitable[None]],
        door: Intake,
        listener: Listener,
        chance: Chance,
    ) -> None:
        self._open_session = open_session
        self._consume = consume
        self._probe = probe
        self._door = door
        self._listener = listener
        self._chance = chance
        self._trouble: asyncio.Future[Unavailable] | None = None
        self._stop = asyncio.Event()
        self._log = structlog.get_logger("consumer.supervisor")
        self.session: Session | None = None

    def trip(self, error: Unavailable) -> None:
        """Something of ours failed under a delivery: take in nothing until it is back."""
        if self._trouble is not None and not self._trouble.done():
            self._trouble.set_result(error)

    def stop(self) -> None:
        """Make `run` return with its session still open, so that what is in hand can be settled."""
        self._stop.set()

    async def run(self) -> None:
        """Return after `stop`. Raises SettingsError or TopologyError for what is wrong at the very first session."""
        failures = 0
        first = True
        while not self._stop.is_set():
            try:
                self.session = await self._opened()
            except (BrokerUnavailable, TopologyError) as error:
                self._refuse_to_start(error, first=first)
                failures += 1
                await self._after_failure(error, failures)
                continue
            if self.session is None:
                return
            first, failures = False, 0
            self._listener.connected()
            await self._live(self.session)
            if self._stop.is_set():
                return
            ended = self.session.ended.result()
            self._door.pause()
            await self.session.close()
            self.session = None
            self._listener.session_ended(ended.reason, ended.detail)
            await self._pause(wait_seconds(RECONNECT, 1, None, self._chance))

    async def _opened(self) -> Session | None:
        """None when we are told to stop meanwhile: a broker that says nothing must not hold us."""
        opening = asyncio.ensure_future(self._open_session())
        await self._first_of(opening)
        if not opening.done():
            opening.cancel()
            await asyncio.wait({opening}, timeout=ABANDON)
            return None
        session: Session = opening.result()
        return session

    @staticmethod
    def _refuse_to_start(error: Unavailable | TopologyError, *, first: bool) -> None:
        """What a person has to mend, and no waiting would."""
        if first and isinstance(error, TopologyError):
            raise error
        if first and isinstance(error, BrokerRefused):
            raise SettingsError(str(error)) from None

    async def _after_failure(self, error: Unavailable | TopologyError, failures: int) -> None:
        wait = wait_seconds(RECONNECT, failures, None, self._chance)
        self._listener.session_ended("connect_error", str(error))
        self._log.warning("no session with the broker", error=str(error), next_try_in_s=round(wait, 2))
        await self._pause(wait)

    async def _live(self, session: Session) -> None:
        """Consume, pause while the store is away, consume again; until the session ends or we stop."""
        while not (session.ended.done() or self._stop.is_set()):
            if not await self._store_is_back(session):
                return
            self._trouble = asyncio.get_running_loop().create_future()
            self._door.resume()
            try:
                await self._consume(session)
            except BrokerUnavailable as error:
                session.end("closed", str(error))
                return
            self._listener.consuming()
            await self._first_of(session.ended, self._trouble)
            if self._trouble.done():
                await self._take_in_nothing(session, self._trouble.result())

    async def _take_in_nothing(self, session: Session, error: Unavailable) -> None:
        self._log.warning("intake stopped", error=str(error))
        self._listener.paused(str(error))
        await session.cancel()
        self._door.pause()
        if isinstance(error, PublishFailed):
            # a new session declares everything again, which mends a queue that somebody deleted
            session.end("watchdog", str(error))

    async def _store_is_back(self, session: Session) -> bool:
        failures = 0
        while not (session.ended.done() or self._stop.is_set()):
            try:
                await self._probe()
            except StoreUnavailable as error:
                failures += 1
                wait = wait_seconds(RECONNECT, failures, None, self._chance)
                self._listener.paused(str(error))
                self._log.warning("the store is away", error=str(error), next_try_in_s=round(wait, 2))
                await self._pause(wait, session.ended)
            else:
                return True
        return False

    async def _pause(self, seconds: float, *until: asyncio.Future[Any]) -> None:
        await self._first_of(*until, timeout=seconds)

    async def _first_of(self, *futures: asyncio.Future[Any], timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Wait for any of the futures, the stop or the time."""
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({stop, *futures}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
