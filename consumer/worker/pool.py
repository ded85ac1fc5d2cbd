"""The pool: places at children for those who bring work."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from consumer.core.outcome import Crashed, Failed, Interrupted, Outcome, Succeeded, TimedOut
from consumer.core.policy import KindPolicy
from consumer.core.ports import Clock, Work
from consumer.worker.allowance import room_of
from consumer.worker.catalogue import Sort
from consumer.worker.config import Figures, Observer, PoolConfig
from consumer.worker.crew import Crew
from consumer.worker.dispatch import Dispatch
from consumer.worker.gate import Gate
from consumer.worker.kills import Kills
from consumer.worker.lines import CpuLine, IoLine
from consumer.worker.member import Member
from consumer.worker.needs import Needs
from consumer.worker.places import Places
from consumer.worker.run import Run
from consumer.worker.suspects import Suspects
from schemas.codes import Code


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
        self._observer = observer
        self._numbers = count(1)
        self._places = {sort: Places() for sort in Sort}
        self._places_of_a_child = {Sort.CPU: 1 + config.look_ahead, Sort.IO: config.io_concurrency}
        self._crew = Crew(config, self, clock)
        self._suspects = Suspects()
        self._kills = Kills()
        self._needs = Needs(room_of(config.container_memory), max(config.processes, 1))
        self._dispatch = Dispatch(
            CpuLine(self._crew.teams[Sort.CPU].members, config.processes, Gate(self._needs), config.look_ahead),
            IoLine(self._crew.teams[Sort.IO].members, config.io_concurrency, self._kills),
        )
        self._runs: set[Run] = set()
        self._paused = False
        self._changed = asyncio.Event()

    @classmethod
    async def start(cls, config: PoolConfig, observer: Observer, clock: Clock) -> "Pool":
        """Return once every child is ready. Raises JobModulesError."""
        pool = cls(config, observer, clock)
        await pool._crew.open()
        pool._needs.shrink(pool._crew.shared_memory)
        try:
            await pool._until(lambda: pool.full or not pool.healthy)
        except asyncio.CancelledError:
            await pool.stop(grace=0)
            raise
        return pool

    # what people and probes ask

    @property
    def full(self) -> bool:
        return self._crew.full

    @property
    def healthy(self) -> bool:
        """False while children can't be started; the pool tries on."""
        return self._crew.healthy

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON Schemas of the payloads, by kind."""
        return {kind: offer.schema for kind, offer in self._crew.offers.items()}

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self._crew.members]

    def policy(self, kind: str) -> KindPolicy | None:
        offer = self._crew.offers.get(kind)
        return offer.policy if offer else None

    def figures(self) -> Figures:
        teams, places = self._crew.teams.items(), self._places.values()
        running = [run for member in self._crew.members for run in member.running]
        return Figures(
            children={sort: sum(member.ready for member in team.members) for sort, team in teams},
            busy={sort: sum(bool(member.queue) for member in team.members) for sort, team in teams},
            running=len(running),
            slots=sum(each.capacity for each in places),
            waiting=sum(each.waiting for each in places),
            oldest_start=min((run.started_at for run in running), default=None),
        )

    # what the pipeline asks

    async def take(self, kind: str) -> PoolSlot | None:
        """Wait for a place where that kind runs, in order of arrival. None when the pool was paused meanwhile."""
        offer = self._crew.offers.get(kind)
        sort = offer.sort if offer else Sort.CPU
        places = self._places[sort]
        return PoolSlot(partial(self._run, sort), places.give_back) if await places.take() else None

    async def _run(self, sort: Sort, work: Work, free: Callable[[], None]) -> Outcome:
        if (work.job.kind, work.job.key) in self._suspects:
            work = replace(work, alone=True)
        run = Run(next(self._numbers), work, sort, free)
        if self._paused:
            run.settle(Interrupted("withdrawn"))
        else:
            self._dispatch.add(run)
        try:
            self._runs.add(run)
            return await run.outcome
        except asyncio.CancelledError:
            if self._dispatch.forget(run):  # else its place is free when the child is done with it
                run.settle(Interrupted("cancelled"))
            raise
        finally:
            self._runs.discard(run)

    def cancel(self, kind: str, key: str) -> bool:
        """End the run of that job, wherever it is: its outcome is Interrupted, whatever comes.

        False: there is none, or it is being ended: asking again must not begin its grace anew.
        """
        runs = [run for run in self._runs if (run.work.job.kind, run.work.job.key) == (kind, key) and not run.cancelled]
        for run in runs:
            run.cancelled_at = asyncio.get_running_loop().time()
            if self._dispatch.forget(run):
                self._never_began(run)
            for member in self._crew.members:
                if run in member.queue:
                    unstarted = member.steal()
                    if run not in unstarted:
                        member.interrupt(run)
                    self.runs_back(unstarted)
        return bool(runs)

    def _never_began(self, run: Run) -> None:
        self._dispatch.over(run)
        run.settle(Interrupted("withdrawn"))

    # what the runner asks

    def pause(self) -> None:
        """Give no more places, and give back the jobs that have not started. Running ones run on."""
        self._paused = True
        for places in self._places.values():
            places.close()
        self._dispatch.withdraw()

    def resume(self) -> None:
        self._paused = False
        for places in self._places.values():
            places.reopen()

    async def stop(self, grace: float) -> None:
        """Let running jobs finish within `grace` seconds, interrupt the rest, and leave no process behind."""
        self.pause()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._until(lambda: not any(member.queue for member in self._crew.members))
        for member in self._crew.members:
            for run in member.queue:
                run.settle(Interrupted("drain deadline"))
            member.kill("drain")
        await self._crew.close()
        await self._until(lambda: not self._crew.members)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    # what children do

    def child_ready(self, member: Member) -> None:
        self._crew.teams[member.sort].respawn.started()
        self._crew.relieve(member.sort)
        self._staffed()
        self._dispatch.idles()

    def child_retiring(self, _member: Member) -> None:
        self._crew.replenish()

    def child_leaving(self, _member: Member, damage: str, kind: str) -> None:
        self._crew.left(damage, kind)

    def child_killed(self, begun: Collection[Run]) -> frozenset[int]:
        return self._kills.meet(begun, asyncio.get_running_loop().time())

    def run_weighed(self, run: Run, grown: int) -> None:
        """While it runs."""
        if grown > self._needs.of(run.work.job.kind):
            self._needs.learn(run.work.job.kind, grown)

    def runs_back(self, runs: list[Run]) -> None:
        """They didn't begin; and there may be room for others."""
        for run in runs:
            if run.cancelled:
                self._never_began(run)
        self._dispatch.back([run for run in runs if not run.cancelled])
        self._dispatch.go()

    def said(self, run: Run | None, stream: str, level: int, text: str) -> None:
        if run is None:
            self._observer.said("", "", stream, text, level=level)
        else:
            job = run.work.job
            self._observer.said(job.kind, job.key, stream, text, attempt=run.work.attempt, level=level)

    def progressed(self, run: Run, fraction: float, note: str) -> None:
        self._observer.progressed(run.work.job.kind, run.work.job.key, fraction, note)

    def run_over(self, member: Member, run: Run, outcome: Outcome) -> None:
        if not isinstance(outcome, Crashed):
            self._crew.worked(member)
        self._learn(member, run, outcome)
        self._dispatch.over(run)
        run.settle(self._suspects.judge(run, outcome))
        self._dispatch.go()
        if not member.queue:
            self._idles(member)
        self._changed.set()

    def _learn(self, member: Member, run: Run, outcome: Outcome) -> None:
        """Of a crash only where memory was the reason: else the peak may be that of a job before. Of an io child
        never: its memory is that of many jobs."""
        if run.sort is Sort.IO:
            return
        if isinstance(outcome, Succeeded | Failed | TimedOut) or (
            isinstance(outcome, Crashed) and outcome.fault.code is Code.OUT_OF_MEMORY
        ):
            self._needs.learn(run.work.job.kind, max(0, outcome.usage.peak_memory - member.base_memory))

    def _idles(self, member: Member) -> None:
        if member.retiring:
            member.dismiss()
        else:
            self._dispatch.idles()

    def child_gone(self, member: Member, reason: str, unstarted: list[Run]) -> None:
        self._observer.child_exited(member.sort, reason)
        self._crew.gone(member, in_vain=reason in ("crash", "out_of_memory"))
        if self._paused:
            for run in unstarted:
                self._never_began(run)
        else:
            self.runs_back(unstarted)
        self._staffed()

    def _staffed(self) -> None:
        for sort, team in self._crew.teams.items():
            self._places[sort].resize(self._places_of_a_child[sort] * team.ready)
        self._dispatch.go()
        self._changed.set()
