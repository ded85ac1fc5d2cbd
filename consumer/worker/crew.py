"""Keeps as many children alive as there should be, and the zygote that they come from."""

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from consumer.core.errors import JobModulesError
from consumer.core.ports import Clock
from consumer.worker.config import PoolConfig
from consumer.worker.member import Listener, Member
from consumer.worker.nursery import Birth, Nursery, ZygoteLost
from consumer.worker.respawn import Respawn

if TYPE_CHECKING:
    from consumer.worker.catalogue import Offer

_log = structlog.get_logger("consumer.worker")


class Crew:
    def __init__(self, config: PoolConfig, listener: Listener, clock: Clock) -> None:
        self.members: list[Member] = []
        self.offers: Mapping[str, Offer] = {}
        self.respawn = Respawn()
        self._config = config
        self._listener = listener
        self._clock = clock
        self._starting = 0
        self._closing = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> int:
        """How many children can take jobs, never more than were asked for."""
        able = sum(member.ready and not member.leaving for member in self.members)
        return min(able, self._config.processes)

    async def open(self) -> None:
        """Raises JobModulesError."""
        self._nursery = Nursery(self._config)
        self.offers = await self._nursery.open()
        self._nursery.lost.add_done_callback(self._zygote_lost)
        self.replenish()

    def replenish(self) -> None:
        if self._closing.is_set() or self._nursery.lost.done():
            return
        staying = sum(not (member.leaving or member.retiring) for member in self.members)
        for _ in range(self._config.processes - staying - self._starting):
            self._starting += 1
            self._begin(self._start_child())

    def gone(self, member: Member, *, in_vain: bool) -> None:
        self.members.remove(member)
        if not member.ready:
            self.respawn.failed_to_start()
        elif in_vain:
            self.respawn.died_in_vain()
        self.replenish()

    async def close(self) -> None:
        """Leave no process behind. What is being started is not cancelled half-way: it fails by itself."""
        self._closing.set()
        await self._nursery.close()
        await asyncio.gather(*self._tasks)

    async def _start_child(self) -> None:
        birth = await self._birth()
        self._starting -= 1
        if birth is None:
            self.replenish()
            return
        member = Member(birth, self._nursery, self._listener, self._clock, self._config)
        self.members.append(member)
        await asyncio.get_running_loop().create_unix_connection(lambda: member, sock=birth.stream)
        try:
            async with asyncio.timeout(self._config.start_timeout):
                await member.up
        except TimeoutError:
            _log.warning("child_not_ready", pid=member.pid, seconds=self._config.start_timeout)
            member.kill("crash")

    async def _birth(self) -> Birth | None:
        await self._back_off()
        try:
            return await self._nursery.fork()
        except (ZygoteLost, OSError) as error:
            if not self._closing.is_set():
                _log.warning("child_not_started", reason=str(error))
            self.respawn.failed_to_start()
            return None

    async def _back_off(self) -> bool:
        """Wait for the turn of the next start. False where there won't be one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.respawn.delay):
                await self._closing.wait()
        return not self._closing.is_set()

    def _zygote_lost(self, _lost: asyncio.Future[None]) -> None:
        if not self._closing.is_set():
            _log.error("zygote_died")
            self.respawn.died_in_vain()
            self._begin(self._reopen())

    async def _reopen(self) -> None:
        """Until the job modules can be imported again: somebody may be replacing them right now."""
        await self._nursery.close()
        while await self._back_off():
            try:
                await self.open()
            except (JobModulesError, OSError) as error:
                _log.error("job_modules_not_imported", reason=str(error))
                self.respawn.failed_to_start()
            else:
                return

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
