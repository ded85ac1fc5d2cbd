"""Keeps as many children alive as there should be, and the zygote that they come from."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import structlog

from consumer.core.errors import JobModulesError
from consumer.core.ports import Clock
from consumer.worker.catalogue import Sort
from consumer.worker.config import PoolConfig
from consumer.worker.cpu_member import CpuMember
from consumer.worker.io_member import IoMember
from consumer.worker.member import Listener, Member
from consumer.worker.nursery import Birth, Nursery, ZygoteLost
from consumer.worker.respawn import Respawn

if TYPE_CHECKING:
    from consumer.worker.catalogue import Offer

_log = structlog.get_logger("consumer.worker")
_PATIENCE = 0.1
"""Seconds to the next child at the most, where the last ones died under their jobs: one costs a fork of 20 ms."""


@dataclass(slots=True)
class Team:
    """The children of one sort: how many there should be, and how their starts go."""

    size: int = 0
    starting: int = 0
    members: list[Member] = field(default_factory=list)
    respawn: Respawn = field(default_factory=lambda: Respawn(_PATIENCE))

    @property
    def ready(self) -> int:
        """How many can take jobs, never more than were asked for."""
        able = sum(member.ready and not member.leaving for member in self.members)
        return min(able, self.size)

    @property
    def missing(self) -> int:
        staying = sum(not (member.leaving or member.retiring or member.worn) for member in self.members)
        return self.size - staying - self.starting


class Crew:
    def __init__(self, config: PoolConfig, listener: Listener, clock: Clock) -> None:
        self.teams = {sort: Team() for sort in Sort}
        self.offers: Mapping[str, Offer] = {}
        self.shared_memory = 0
        self._zygotes = Respawn()
        self._config = config
        self._listener = listener
        self._clock = clock
        self._told: set[tuple[str, str]] = set()
        self._closing = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def members(self) -> list[Member]:
        return [*chain.from_iterable(team.members for team in self.teams.values())]

    @property
    def full(self) -> bool:
        return all(team.ready == team.size for team in self.teams.values())

    @property
    def healthy(self) -> bool:
        """False while what should be started can't be."""
        return self._zygotes.healthy and all(team.respawn.healthy for team in self.teams.values())

    async def open(self) -> None:
        """Raises JobModulesError."""
        self._nursery = Nursery(self._config, self._listener)
        self.offers = await self._nursery.open()
        self.shared_memory = self._nursery.used
        sorts = {offer.sort for offer in self.offers.values()}
        self.teams[Sort.CPU].size = self._config.processes if Sort.CPU in sorts else 0
        self.teams[Sort.IO].size = self._config.io_processes if Sort.IO in sorts else 0
        self._nursery.lost.add_done_callback(self._zygote_lost)
        self.replenish()

    def replenish(self) -> None:
        if self._closing.is_set() or self._nursery.lost.done():
            return
        for sort, team in self.teams.items():
            for _ in range(team.missing):
                team.starting += 1
                self._begin(self._start_child(sort, team))

    def relieve(self, sort: Sort) -> None:
        """There is a new one: of those who have served long enough, the one that did so first may go."""
        for member in self.teams[sort].members:
            if member.worn and not (member.retiring or member.leaving):
                member.retire()
                return

    def left(self, damage: str, kind: str) -> None:
        """Told once a kind and damage: a job that does it once does it each time."""
        if (kind, damage) not in self._told:
            self._told.add((kind, damage))
            _log.warning("child_damaged", kind=kind, left=damage)
        self.replenish()

    def worked(self, member: Member) -> None:
        """A job came to an end there that did not take its child along."""
        self.teams[member.sort].respawn.worked()
        self._zygotes.worked()

    def gone(self, member: Member, *, in_vain: bool) -> None:
        team = self.teams[member.sort]
        team.members.remove(member)
        if not member.ready:
            team.respawn.failed_to_start()
        elif in_vain:
            team.respawn.died_in_vain()
        self.replenish()

    async def close(self) -> None:
        """Leave no process behind. What is being started is not cancelled half-way: it fails by itself."""
        self._closing.set()
        await self._nursery.close()
        await asyncio.gather(*self._tasks)

    async def _start_child(self, sort: Sort, team: Team) -> None:
        birth = await self._birth(sort, team.respawn)
        team.starting -= 1
        if birth is None:
            self.replenish()
            return
        kind = IoMember if sort is Sort.IO else CpuMember
        member = kind(birth, self._nursery, self._listener, self._clock, self._config)
        team.members.append(member)
        await asyncio.get_running_loop().create_unix_connection(lambda: member, sock=birth.stream)
        try:
            async with asyncio.timeout(self._config.start_timeout):
                await member.up
        except TimeoutError:
            _log.warning("child_not_ready", pid=member.pid, seconds=self._config.start_timeout)
            member.kill("crash")

    async def _birth(self, sort: Sort, respawn: Respawn) -> Birth | None:
        await self._back_off(respawn)
        try:
            return await self._nursery.fork(sort)
        except (ZygoteLost, OSError) as error:
            if not self._closing.is_set():
                _log.warning("child_not_started", reason=str(error))
            respawn.failed_to_start()
            return None

    async def _back_off(self, respawn: Respawn) -> bool:
        """Wait for the turn of the next start. False where there won't be one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(respawn.delay):
                await self._closing.wait()
        return not self._closing.is_set()

    def _zygote_lost(self, _lost: asyncio.Future[None]) -> None:
        if not self._closing.is_set():
            _log.error("zygote_died")
            self._zygotes.died_in_vain()
            self._begin(self._reopen())

    async def _reopen(self) -> None:
        """Until the job modules can be imported again: somebody may be replacing them right now."""
        await self._nursery.close()
        while await self._back_off(self._zygotes):
            try:
                await self.open()
            except (JobModulesError, OSError) as error:
                _log.error("job_modules_not_imported", reason=str(error))
                self._zygotes.failed_to_start()
            else:
                self._zygotes.started()
                return

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
