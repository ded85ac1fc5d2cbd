"""Looks from time to time at a cpu child that has something to do, and that doesn't tell how it is."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from consumer.worker import procfs
from consumer.worker.run import Run

EVERY = 1.0
PATIENCE = 3
"""How many looks may find a child waiting that should begin a run: it waits for what won't come."""


class Watched(Protocol):
    pid: int

    @property
    def first(self) -> Run | None: ...
    def has_begun(self, run: Run) -> bool: ...


class Vigil:
    """A child that is stopped while it runs a job is left to that job's timeout; `give_up` is for the others.

    `weigh` is told what a child that runs a job holds.
    """

    def __init__(self, child: Watched, give_up: Callable[[], None], weigh: Callable[[Run, int], None]) -> None:
        self._child = child
        self._give_up = give_up
        self._weigh = weigh
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for = 0
        self._looks = 0

    def start(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(EVERY, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        """Until there is nothing to do: nearly all runs are over long before the first look."""
        self._timer = None
        run = self._child.first
        if run is None:
            return
        self.start()
        if self._child.has_begun(run):
            self._weigh(run, procfs.own_memory(self._child.pid))
        elif procfs.is_stopped(self._child.pid) or self._waits_in_vain(run):
            self._give_up()

    def _waits_in_vain(self, run: Run) -> bool:
        """Not one that wants to run and doesn't come to it, on a busy machine."""
        if run.id != self._waits_for:
            self._waits_for, self._looks = run.id, 0
        self._looks += procfs.waits(self._child.pid)
        return self._looks >= PATIENCE
