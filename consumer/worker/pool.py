"""The pool: places at children for those who bring work."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from consumer.core.outcome import Crashed, Interrupted, Outcome
from consumer.core.policy import KindPolicy
from consumer.core.ports import Clock, Work
from consumer.worker.config import Figures, Observer, PoolConfig
from consumer.worker.crew import Crew
from consumer.worker.dispatch import Dispatch
from consumer.worker.member import Member
from consumer.worker.places import Places
from consumer.worker.run import Run


class PoolSlot:
    """A place at a child: used once, or given back."""

    def __init__(self, run: Callable[[Work, Callable[[], None]], Awaitable[Outcome]], free: Callable[[], None]) -> None:
        self._run = run
        self._give_back = free
        self._free = False

    async def run(self, work: Work) -> Outcome:
        return await self._run(work, self.free)

    def free(self) -> None:
        if not self._free:
            self._free = True
            self._give_back()


class Pool:
    """Use `Pool.start`. Everything here runs in the event loop and never blocks."""

    def __init__(self, config: PoolConfig, observer: Observer, clock: Clock) -> None:
        self._processes = config.processes
        self._look_ahead = config.look_ahead
        self._observer = observer
        self._numbers = count(1)
        self._places = Places()
        self._crew = Crew(config, self, clock)
        self._members = self._crew.members
        self._dispatch = Dispatch(self._members, config.processes, config.look_ahead)
        self._paused = False
        self._changed = asyncio.Event()

    @classmethod
    async def start(cls, config: PoolConfig, observer: Observer, clock: Clock) -> "Pool":
        """Return once every child is ready. Raises JobModulesError."""
        pool = cls(config, observer, clock)
        await pool._crew.open()
        try:
            await pool._until(lambda: pool.full or not pool.healthy)
        except asyncio.CancelledError:
            await pool.stop(grace=0)
            raise
        return pool

    # what people and probes ask

    @property
    def full(self) -> bool:
        return self._crew.ready == self._processes

    @property
    def healthy(self) -> bool:
        """False while children can't be started; the pool tries on."""
        return self._crew.respawn.healthy

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schemas of the payloads, by kind."""
        return {kind: offer.schema for kind, offer in self._crew.offers.items()}

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self._members]

    def policy(self, kind: str) -> KindPolicy | None:
        offer = self._crew.offers.get(kind)
        return offer.policy if offer else None

    def figures(self) -> Figures:
        running = [member.running for member in self._members if member.running is not None]
        return Figures(
            children=sum(member.ready for member in self._members),
            busy=sum(bool(member.queue) for member in self._members),
            running=len(running),
            slots=self._places.capacity,
            waiting=self._places.waiting,
            oldest_start=min((run.started_at for run in running), default=None),
        )

    # what the pipeline asks

    async def take(self) -> PoolSlot | None:
        """Wait for a place, in order of arrival. None when the pool was paused meanwhile."""
        return PoolSlot(self._run, self._places.give_back) if await self._places.take() else None

    async def _run(self, work: Work, free: Callable[[], None]) -> Outcome:
        run = Run(next(self._numbers), work, free)
        if self._paused:
            run.settle(Interrupted("withdrawn"))
        else:
            self._dispatch.add(run)
        try:
            return await run.outcome
        except asyncio.CancelledError:
            if self._dispatch.forget(run):  # else its place is free when the child is done with it
                run.settle(Interrupted("cancelled"))
            raise

    # what the runner asks

    def pause(self) -> None:
        """Give no more places, and give back the jobs that have not started. Running ones run on."""
        self._paused = True
        self._places.close()
        self._dispatch.withdraw()

    def resume(self) -> None:
        self._paused = False
        self._places.reopen()

    async def stop(self, grace: float) -> None:
        """Let running jobs finish within `grace` seconds, interrupt the rest, and leave no process behind."""
        self.pause()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._until(lambda: not any(member.queue for member in self._members))
        for member in self._members:
            for run in member.queue:
                run.settle(Interrupted("drain deadline"))
            member.kill("drain")
        await self._crew.close()
        await self._until(lambda: not self._members)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    # what children do

    def child_ready(self, _member: Member) -> None:
        self._crew.respawn.started()
        self._staffed()
        self._dispatch.idles()

    def child_retiring(self, _member: Member) -> None:
        self._crew.replenish()

    def run_over(self, member: Member, run: Run, outcome: Outcome) -> None:
        if not isinstance(outcome, Crashed):
            self._crew.respawn.worked()
        self._dispatch.over(run)
        run.settle(outcome)
        self._dispatch.go()
        if not member.queue:
            self._idles(member)
        self._changed.set()

    def _idles(self, member: Member) -> None:
        if member.retiring:
            member.dismiss()
        else:
            self._dispatch.idles()

    def child_gone(self, member: Member, reason: str, unstarted: list[Run]) -> None:
        self._observer.child_exited(reason)
        self._crew.gone(member, in_vain=reason in ("crash", "out_of_memory"))
        if self._paused:
            for run in unstarted:
                self._dispatch.over(run)
                run.settle(Interrupted("withdrawn"))
        else:
            self._dispatch.back(unstarted)
        self._staffed()

    def _staffed(self) -> None:
        self._places.resize((1 + self._look_ahead) * self._crew.ready)
        self._dispatch.go()
        self._changed.set()
