"""Life of the process: starting → consuming ⇄ paused → draining → stopped."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import structlog

from consumer.core.lifecycle import Phase, may_follow
from consumer.core.ports import Delivery
from consumer.http.server import Health
from consumer.metrics import Metrics
from consumer.supervisor import Supervisor

T = TypeVar("T")
TICK = 0.5
"""Seconds between two looks at the clock by the event loop."""
SETTLE_GRACE = 5.0
"""Seconds that interrupted work gets to be given back after the drain deadline."""
HELPER_PAUSE = 1.0
"""Seconds before a helper that failed begins again."""
Helper = Callable[[], Coroutine[Any, Any, None]]
"""What runs for as long as the daemon does."""


class Processor(Protocol):
    async def process(self, delivery: Delivery) -> None: ...


class Pool(Protocol):
    @property
    def healthy(self) -> bool: ...
    def pause(self) -> None: ...
    async def stop(self, grace: float) -> None:
        """Give running jobs `grace` seconds, then interrupt them; no child is left."""
        ...


class InHand:
    """The deliveries under way: each is a task of ours, which outlives the channel that it came from."""

    def __init__(self, processor: Processor, heard: Callable[[Delivery], None]) -> None:
        self._processor = processor
        self._heard = heard
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("consumer.runner")

    def receive(self, delivery: Delivery) -> None:
        self._heard(delivery)
        task = asyncio.get_running_loop().create_task(self._processor.process(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # a bug of ours: unsettled, so the broker keeps the message and its delivery limit bounds the loop
            self._log.error("a delivery could not be processed", exc_info=error)

    def __len__(self) -> int:
        return len(self._tasks)

    async def empty(self, within: float) -> bool:
        """Wait until nothing is under way, `within` seconds at most."""
        deadline = asyncio.get_running_loop().time() + within
        while self._tasks:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await asyncio.wait(self._tasks, timeout=left)
        return True


class Life:
    """The phase, and everybody who shows it: probes, metrics, the log."""

    def __init__(self, metrics: Metrics, health: Health) -> None:
        self._metrics = metrics
        self._health = health
        self._log = structlog.get_logger("consumer.runner")
        self.phase = Phase.STARTING

    def enter(self, phase: Phase, why: str = "") -> None:
        if phase is not self.phase and not may_follow(self.phase, phase):
            return
        self._health.unready = "" if phase is Phase.CONSUMING else f"{phase}: {why}" if why else str(phase)
        if phase is self.phase:
            return
        self.phase = phase
        self._metrics.paused.set(phase is Phase.PAUSED)
        self._metrics.draining.set(phase is Phase.DRAINING)
        self._metrics.breaker.labels("intake", "").set(phase is Phase.PAUSED)
        self._log.info("phase", phase=str(phase), **({"why": why} if why else {}))

    def connected(self) -> None:
        self._metrics.connected.set(1)

    def consuming(self) -> None:
        self.enter(Phase.CONSUMING)

    def paused(self, why: str) -> None:
        self.enter(Phase.PAUSED, why)

    def blocked(self, blocked: bool) -> None:
        self._metrics.blocked.set(blocked)

    def session_ended(self, reason: str, detail: str) -> None:
        self._metrics.connected.set(0)
        self._metrics.sessions.labels(reason).inc()
        self.enter(Phase.PAUSED, f"no session with the broker: {detail}")
        if reason != "connect_error":
            self._log.warning("session ended", reason=reason, detail=detail)


async def tick(health: Health, metrics: Metrics) -> None:
    """Prove that the loop runs, and measure how late it is."""
    loop = asyncio.get_running_loop()
    while True:
        health.last_tick = time.time()
        metrics.last_tick.set(health.last_tick)
        planned = loop.time() + TICK
        await asyncio.sleep(TICK)
        metrics.loop_lag.observe(max(loop.time() - planned, 0.0))


async def pool_shown(pool: Pool, health: Health) -> None:
    """Not ready while children are missing and can't be replaced."""
    while True:
        health.pool = "" if pool.healthy else "children can't be started"
        await asyncio.sleep(TICK)


class Signals:
    """SIGTERM and SIGINT: the first asks for a drain, the second ends the waiting."""

    def __init__(self) -> None:
        self.first = asyncio.Event()
        self.second = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._heard)

    async def unless_told(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do the work, but drop it, and return None, when we are told to stop meanwhile."""
        doing = asyncio.create_task(work)
        told = asyncio.create_task(self.first.wait())
        await asyncio.wait({doing, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing})
            return None
        return doing.result()

    def _heard(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


@dataclass(frozen=True, slots=True)
class Drain:
    """`seconds`: how long running jobs may go on. `give_up` ends the waiting for a store that is away."""

    seconds: float
    give_up: Callable[[], None]


async def consume_until_told_to_stop(
    supervisor: Supervisor, pool: Pool, in_hand: InHand, life: Life, signals: Signals, drain: Drain
) -> None:
    """Supervise sessions until the first signal, then drain."""
    supervising = asyncio.create_task(supervisor.run())
    told = asyncio.create_task(signals.first.wait())
    await asyncio.wait({supervising, told}, return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    try:
        if supervising.done():
            supervising.result()
        supervisor.stop()
        await supervising
        await _drain(supervisor, pool, in_hand, life, signals, drain.seconds)
    finally:
        await pool.stop(0)
        drain.give_up()
        await in_hand.empty(SETTLE_GRACE)
        if supervisor.session is not None:
            await supervisor.session.close()
        life.enter(Phase.STOPPED)


async def _drain(
    supervisor: Supervisor, pool: Pool, in_hand: InHand, life: Life, signals: Signals, seconds: float
) -> None:
    """Take nothing more, give back what has not started, let running jobs finish, until the deadline."""
    life.enter(Phase.DRAINING, f"told to stop, {len(in_hand)} deliveries in hand")
    if supervisor.session is not None:
        await supervisor.session.cancel()
    pool.pause()
    finished = asyncio.create_task(in_hand.empty(seconds))
    hurried = asyncio.create_task(signals.second.wait())
    await asyncio.wait({finished, hurried}, return_when=asyncio.FIRST_COMPLETED)
    for task in (finished, hurried):
        task.cancel()


@asynccontextmanager
async def in_background(*helpers: Helper) -> AsyncIterator[None]:
    """Run helpers beside the body, and end them with it."""
    tasks = [asyncio.create_task(_lasting(helper)) for helper in helpers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _lasting(helper: Helper) -> None:
    """Without one of them leases would run out, or follow-ups stay where they are, and nobody would know why."""
    while True:
        try:
            await helper()
        except Exception:  # noqa: BLE001 - whatever it is
            structlog.get_logger("consumer.runner").exception(
                "a helper of the daemon failed, which is a bug of ours: it begins again"
            )
        await asyncio.sleep(HELPER_PAUSE)
