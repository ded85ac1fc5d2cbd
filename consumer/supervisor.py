"""Keeps us consuming: one session after the other, paused while something of ours is away."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from consumer.core.errors import (
    BrokerRefused,
    BrokerUnavailable,
    BuriedTooMany,
    PublishFailed,
    SettingsError,
    StoreUnavailable,
    TopologyError,
    Unavailable,
)
from consumer.core.ports import Chance
from consumer.core.retry import wait_seconds
from consumer.core.streak import LASTING, LOST, Streak

ABANDON = 1.0
"""Seconds that a session being opened gets to clean up when we stop."""
ASK_AGAIN = 1.0
"""Seconds between two questions whether the broker still holds back what we publish."""
PUBLISHING, WATCHDOG = "publish_failed", "watchdog"
REFUSALS = frozenset({PUBLISHING, "channel_closed", "cancelled"})
BLOCKED = "the broker is blocked by an alarm (memory or disk): it takes no retries and no dead letters"


SLOW_START = 2.0
"""Seconds of one message at a time after an outage of ours, before the whole prefetch is taken again."""


class Session(Protocol):
    """One life of the connections to the broker."""

    @property
    def ended(self) -> asyncio.Future[Any]: ...
    @property
    def consumer(self) -> str | None: ...
    async def depths(self, queues: Sequence[str]) -> Mapping[str, Any]: ...
    async def blocked(self) -> bool: ...
    async def cancel(self) -> None: ...
    async def close(self) -> None: ...
    def end(self, reason: str, detail: str) -> None: ...


class Door(Protocol):
    """Of the pool: closed, waiting deliveries go back and unstarted jobs are withdrawn."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Listener(Protocol):
    """Is told what changes, for probes, metrics and the log."""

    def connected(self) -> None: ...
    def consuming(self) -> None: ...
    def paused(self, why: str) -> None: ...
    def blocked(self, blocked: bool) -> None: ...
    def session_ended(self, reason: str, detail: str) -> None: ...


class Supervisor:
    """`open_session` and `consume` are the broker's; `probe` proves that the store can be written to.

    `consume` is told whether to take one message at a time: then only the one that ends the session again and again
    is charged for it, and a store that has just come back is not overrun.
    """

    def __init__(
        self,
        open_session: Callable[[], Awaitable[Any]],
        consume: Callable[[Any, bool], Awaitable[None]],
        probe: Callable[[], Awaitable[None]],
        door: Door,
        listener: Listener,
        chance: Chance,
    ) -> None:
        self._open_session = open_session
        self._consume = consume
        self._probe = probe
        self._door = door
        self._listener = listener
        self._chance = chance
        self._streak = Streak(REFUSALS, chance)
        self._trouble: asyncio.Future[Unavailable] | None = None
        self._trips = 0
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
            opened = self._now()
            await self._live(self.session)
            if self._stop.is_set():
                return
            await self._bury(self.session, self._now() - opened)

    async def _bury(self, session: Session, lived: float) -> None:
        """Close what has ended, and wait before the next."""
        ended = session.ended.result()
        self._door.pause()
        self._listener.session_ended(ended.reason, ended.detail)
        await session.close()
        self.session = None
        self._streak.ended(ended.reason, ended.detail, lived)
        wait = self._streak.wait()
        if self._streak.becomes_a_pattern:
            self._log.error(
                "sessions end the same way again and again: taking one message at a time",
                reason=ended.reason,
                detail=ended.detail,
                next_try_in_s=round(wait, 2),
            )
        await self._pause(wait)

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
        wait = wait_seconds(LOST, failures, None, self._chance)
        self._listener.session_ended("connect_error", str(error))
        self._log.warning("no session with the broker", error=str(error), next_try_in_s=round(wait, 2))
        await self._pause(wait)

    async def _live(self, session: Session) -> None:
        """Consume, pause while store or broker can't follow, consume again; until the session ends or we stop."""
        while await self._store_is_back(session) and await self._broker_takes_copies(session):
            self._trouble = asyncio.get_running_loop().create_future()
            self._door.resume()
            careful_for = LASTING if self._streak.is_a_pattern else SLOW_START if self._trips else None
            try:
                await self._consume(session, careful_for is not None)
            except BrokerUnavailable as error:
                session.end(WATCHDOG, str(error))
                return
            self._listener.consuming()
            await self._first_of(session.ended, self._trouble, timeout=careful_for)
            if self._trouble.done():
                await self._take_in_nothing(session, self._trouble.result())
                await self._pause(self._wait_after(self._trouble.result()), session.ended)
            elif careful_for is not None and not session.ended.done():
                self._streak, self._trips = Streak(REFUSALS, self._chance), 0
                await session.cancel()

    def _wait_after(self, error: Unavailable) -> float:
        if isinstance(error, BuriedTooMany):
            return error.seconds
        return wait_seconds(LOST, self._trips, None, self._chance)

    async def _take_in_nothing(self, session: Session, error: Unavailable) -> None:
        self._trips += 1
        self._log.warning("intake stopped", error=str(error))
        self._listener.paused(str(error))
        await session.cancel()
        self._door.pause()
        if isinstance(error, PublishFailed) and not await session.blocked():
            # a new session declares everything again, which mends a queue that somebody deleted
            session.end(PUBLISHING, str(error))

    async def _broker_takes_copies(self, session: Session) -> bool:
        """Wait while an alarm holds them back: what is taken in now could not be put off or refused."""
        while not self._is_over(session):
            blocked = await session.blocked()
            self._listener.blocked(blocked)
            if not blocked:
                return True
            self._listener.paused(BLOCKED)
            await self._pause(ASK_AGAIN, session.ended)
        return False

    async def _store_is_back(self, session: Session) -> bool:
        failures = 0
        while not self._is_over(session):
            try:
                await self._probe()
            except StoreUnavailable as error:
                failures += 1
                wait = wait_seconds(LOST, failures, None, self._chance)
                self._listener.paused(str(error))
                self._log.warning("the store is away", error=str(error), next_try_in_s=round(wait, 2))
                await self._pause(wait, session.ended)
            else:
                return True
        return False

    def _is_over(self, session: Session) -> bool:
        return session.ended.done() or self._stop.is_set()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def _pause(self, seconds: float, *until: asyncio.Future[Any]) -> None:
        await self._first_of(*until, timeout=seconds)

    async def _first_of(self, *futures: asyncio.Future[Any], timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Wait for any of the futures, the stop or the time."""
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({stop, *futures}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
