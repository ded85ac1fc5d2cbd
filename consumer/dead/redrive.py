"""Dead letters back to work: each is acked only after its copy is confirmed, as the next generation of its job."""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from config.settings import Settings
from consumer.broker.deadletters import PREFETCH
from consumer.core.letter_index import Wanted
from consumer.core.letters import Letter, State
from consumer.core.parcels import Copier
from consumer.core.ports import Store
from consumer.dead.canary import Canary, watch
from consumer.dead.desk import Desk, Removal, desk
from consumer.operations import closing_store, publishing
from consumer.waiting import told
from consumer.wiring import clock, topology_of

IN_HAND_SECONDS = 60
"""A slow redrive takes no more letters in hand than it sends in so many seconds: the broker doesn't wait for ever."""


@dataclass(frozen=True, slots=True)
class Order:
    """`rate`: letters a second, at most; `most`: how often a letter may be redriven in all."""

    wanted: Wanted
    most: int
    limit: float = math.inf
    rate: float = math.inf
    canary: Canary | None = None

    @property
    def allowed(self) -> Wanted:
        return replace(self.wanted, redriven=self.most - 1)

    @property
    def prefetch(self) -> int:
        return max(1, math.ceil(min(self.rate * IN_HAND_SECONDS, PREFETCH)))


@dataclass(frozen=True, slots=True)
class Redriven:
    """`capped`: letters that were redriven too often to be sent once more."""

    sent: int
    capped: int


async def plan(settings: Settings, order: Order) -> Redriven:
    """What a redrive would do, as far as the index knows: the queue is not touched."""
    async with closing_store(settings) as store:
        allowed, wanted = await store.letters.count(order.allowed), await store.letters.count(order.wanted)
    return Redriven(int(min(order.limit, allowed)), wanted - allowed)


async def redrive(settings: Settings, order: Order) -> Redriven:
    """Send what is wanted and was dead when we began. Raise Unfinished where it stopped before its end."""
    began = clock() + 1
    until = began if order.wanted.until is None else min(began, order.wanted.until)
    order = replace(order, wanted=replace(order.wanted, until=until))
    copier = Copier(topology_of(settings), "redrive")
    async with (
        closing_store(settings) as store,
        publishing(settings) as publisher,
        desk(settings, store, order.prefetch) as at,
    ):

        async def send(letter: Letter) -> None:
            await publisher.publish(copier.redrive(letter.message))

        return await Redrive(order, store, at, Removal(at, State.REDRIVEN, send)).run()


class Redrive:
    def __init__(self, order: Order, store: Store, at: Desk, removal: Removal) -> None:
        self._order = order
        self._store = store
        self._desk = at
        self._removal = removal
        self._pace = Pace(order.rate, at.interrupted)
        self._capped = 0

    async def run(self) -> Redriven:
        left = self._order.limit
        async with self._removal.under_way(), aclosing(self._desk.matching(self._order.wanted)) as letters:
            if (canary := self._order.canary) is not None:
                sent = await self._send(letters, min(canary.count, left))
                await self._removal.settled()
                await watch(self._store, sent, canary, self._desk.interrupted)
                left -= len(sent)
            await self._send(letters, left)
        return Redriven(self._removal.done, self._capped)

    async def _send(self, letters: AsyncGenerator[tuple[int, Letter]], limit: float) -> list[Letter]:
        sent: list[Letter] = []
        while len(sent) < limit and (found := await anext(letters, None)) is not None:
            tag, letter = found
            if self._order.allowed.matches(letter):
                await self._removal.begin(tag, letter)
                sent.append(letter)
                await self._pace.keep()
            else:
                self._desk.queue.hold(tag)
                self._capped += 1
        return sent


class Pace:
    """So many a second, evenly; what was late is made up for."""

    def __init__(self, rate: float, interrupted: asyncio.Event) -> None:
        self._step = 1 / rate
        self._interrupted = interrupted
        self._next = asyncio.get_running_loop().time()

    async def keep(self) -> None:
        self._next += self._step
        wait = self._next - asyncio.get_running_loop().time()
        if wait > 0:
            await told(self._interrupted, wait)
