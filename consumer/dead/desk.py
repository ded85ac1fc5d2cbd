"""Where letters are worked on: the queue in hand, its index, and a hand that takes letters out one by one."""

import asyncio
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from config.settings import Settings
from consumer.broker.deadletters import PREFETCH, DeadLetters, dead_letters
from consumer.core.decode import DecodeRules, decode
from consumer.core.errors import ConsumerError, Unfinished
from consumer.core.job import Message
from consumer.core.letter_index import LetterIndex, Wanted
from consumer.core.letters import Letter, State, letter_of
from consumer.core.ports import Clock, Store
from consumer.core.topology import Topology
from consumer.wiring import broker_of, clock, rules_of, topology_of

MARKED_AT_ONCE = 200
Step = Callable[[Letter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Desk:
    queue: DeadLetters
    index: LetterIndex
    topology: Topology
    rules: DecodeRules
    interrupted: asyncio.Event
    unsaid: int = 0
    """When a letter died that doesn't say it, in epoch ms: long ago, so that nobody waits for it to be old enough."""

    async def letters(self) -> AsyncGenerator[tuple[int, Letter]]:
        """Those that are in the queue now, with their tags; what comes meanwhile is left for the next time."""
        for _ in range((await self.queue.depth()).ready):
            taken = await self.queue.take()
            if taken is None:
                return
            yield taken[0], self.letter(taken[1])

    async def matching(self, wanted: Wanted) -> AsyncGenerator[tuple[int, Letter]]:
        """Of these, what is wanted; the others are held. Letters that are named are looked for until all are found."""
        sought = set(wanted.ids or ())
        async for tag, letter in self.letters():
            sought.discard(letter.id)
            if wanted.matches(letter):
                yield tag, letter
            else:
                self.queue.hold(tag)
            if wanted.ids and not sought:
                return
        if sought and not self.interrupted.is_set():
            raise Unfinished(
                f"letter {min(sought)} is not in the queue now: somebody may have it in hand, else 'consumer dead "
                "index' takes it off the list"
            )

    def letter(self, message: Message) -> Letter:
        job = decode(message, self.rules)
        return letter_of(message, self.topology, (job.kind, job.key), self.unsaid)


@asynccontextmanager
async def desk(settings: Settings, store: Store, prefetch: int = PREFETCH, unsaid: int = 0) -> AsyncIterator[Desk]:
    """SIGINT and SIGTERM end the taking in good order: what is under way is finished, all else goes back."""
    await store.probe()  # no letter is taken where the index could not be told what became of it
    topology = topology_of(settings)
    interrupted = asyncio.Event()
    async with dead_letters(broker_of(settings), topology.dead_queue, prefetch) as queue:

        def interrupt() -> None:
            interrupted.set()
            queue.stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        yield Desk(queue, store.letters, topology, rules_of(settings, "").decode, interrupted, unsaid)


class Removal:
    """Takes letters out: `step` does what is to be done with one before, then it is acked, then the index hears of it.

    Whatever ends us between two of these, no letter is lost: one that was sent and not acked may be sent again, which
    its key absorbs, and one of which the index did not hear is only listed for too long.
    """

    def __init__(self, desk: Desk, state: State, step: Step, clock: Clock = clock) -> None:
        self._desk = desk
        self._state = state
        self._step = step
        self._clock = clock
        self._places = asyncio.Semaphore(PREFETCH)
        self._tasks: set[asyncio.Task[None]] = set()
        self._gone: list[Letter] = []
        self._failure: Exception | None = None
        self.done = 0

    @asynccontextmanager
    async def under_way(self) -> AsyncIterator[None]:
        """At the end all is settled. Where it ends early, say how far it came."""
        try:
            try:
                yield
            finally:
                await self.settled()
            if self._desk.interrupted.is_set():
                raise Unfinished("interrupted" if self.done else "interrupted: nothing was changed")
        except ConsumerError as error:
            if not self.done:
                raise
            raise Unfinished(f"{error}; {self.done} letters were {self._state}, all others are in the queue") from None

    async def take(self, wanted: Wanted) -> None:
        """All of them."""
        async with self.under_way(), aclosing(self._desk.matching(wanted)) as letters:
            async for tag, letter in letters:
                await self.begin(tag, letter)

    async def begin(self, tag: int, letter: Letter) -> None:
        """Wait for a place only; many are under way at a time."""
        await self._places.acquire()
        if self._failure is not None:
            raise self._failure
        task = asyncio.create_task(self._take_out(tag, letter))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if len(self._gone) >= MARKED_AT_ONCE:
            await self._tell_index()

    async def settled(self) -> None:
        """Return when nothing is under way and the index knows all; raise what went wrong."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._tell_index()
        if self._failure is not None:
            raise self._failure

    async def _take_out(self, tag: int, letter: Letter) -> None:
        try:
            await self._step(letter)
            self._desk.queue.ack(tag)
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            self._failure = self._failure or error
        else:
            self._gone.append(letter)
            self.done += 1
        finally:
            self._places.release()

    async def _tell_index(self) -> None:
        gone, self._gone = {letter.id: letter for letter in self._gone}, []
        if not gone:
            return
        now = self._clock()
        known = await self._desk.index.mark(list(gone), self._state, now)
        for letter in gone.values():
            if letter.id not in known:
                await self._desk.index.bury(replace(letter, state=self._state, state_at=max(letter.state_at, now)))
