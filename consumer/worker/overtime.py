"""The hard half of the execution timeout: what follows where the handler did not mind the exception."""

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol

from consumer.worker.run import Run


class Runner(Protocol):
    @property
    def first(self) -> Run | None: ...


class Overtime:
    """SIGTERM half a grace after the timeout, SIGKILL a whole one after it, and again until the child is gone.

    One timer a child, set anew only where it would ring too late: nearly all runs are over long before.
    """

    def __init__(self, runner: Runner, grace: float, act: Callable[[Run, int], None]) -> None:
        self._runner = runner
        self._grace = grace
        self._act = act
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def watch(self, run: Run) -> None:
        """Look after the run that has just started."""
        self._ring(run.ends_at + self._grace / 2)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self, moment: float) -> None:
        if self._timer is not None:
            if self._rings_at <= moment:
                return
            self._timer.cancel()
        self._rings_at = moment
        self._timer = self._loop.call_at(moment, self._look)

    def _look(self) -> None:
        self._timer = None
        run = self._runner.first
        if run is None:
            return
        over = self._loop.time() - run.ends_at
        if over < self._grace / 2:
            self.watch(run)
        elif over < self._grace:
            self._act(run, signal.SIGTERM)
            self._ring(run.ends_at + self._grace)
        else:
            self._act(run, signal.SIGKILL)
            self._ring(self._loop.time() + self._grace)
