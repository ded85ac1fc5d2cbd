"""The places at children that are none: handlers run in this process, one at a time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from consumer.core.outcome import Outcome
from consumer.core.ports import Clock, Work
from consumer.testing.rehearsal import Ran, Rehearsal, rehearse, rehearse_async
from consumer.worker.catalogue import Sort
from consumer.worker.loading import Kind


@dataclass(frozen=True, slots=True)
class Call:
    """A `def` handler is called from outside of the loop, so that it may have one of its own."""

    rehearsal: Rehearsal
    answer: asyncio.Future[Ran]


class Places:
    """`last` is the run that was over last, `called` the next call of a `def` handler."""

    def __init__(self, kinds: Mapping[str, Kind], clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.last: Ran | None = None
        self.called: asyncio.Future[Call] = loop.create_future()
        self._kinds = kinds
        self._clock = clock
        self._loop = loop
        self._running: Rehearsal | None = None

    async def take(self, _: str) -> "Place":
        return Place(self)

    async def run(self, work: Work) -> Outcome:
        kind = self._kinds[work.job.kind]
        rehearsal = self._running = Rehearsal(kind, work, self._clock)
        try:
            self.last = await (rehearse_async(rehearsal) if kind.offer.sort is Sort.IO else self._call(rehearsal))
        finally:
            self._running = None
        return self.last.outcome

    async def _call(self, rehearsal: Rehearsal) -> Ran:
        answer: asyncio.Future[Ran] = self._loop.create_future()
        self.called.set_result(Call(rehearsal, answer))
        return await answer

    def answer(self) -> None:
        """Run the handler that was called, while the loop stands still."""
        call = self.called.result()
        self.called = self._loop.create_future()
        call.answer.set_result(rehearse(call.rehearsal))

    def cancel(self, kind: str, key: str) -> None:
        """End the run of that job, if it is the one that runs."""
        running = self._running
        if running is not None and (running.work.job.kind, running.work.job.key) == (kind, key):
            running.cancel()


@dataclass(frozen=True, slots=True)
class Place:
    places: Places

    async def run(self, work: Work) -> Outcome:
        return await self.places.run(work)

    def free(self) -> None:
        """There is always room for one."""
