"""One cpu child as the parent sees it: what runs there, when that must end, and whether it is to blame for the end."""

import os
import signal
from collections import deque

from consumer.core.outcome import Outcome, TimedOut
from consumer.core.ports import Clock
from consumer.worker import run as runs
from consumer.worker.catalogue import Sort
from consumer.worker.config import PoolConfig
from consumer.worker.guard import HALF_DONE, WORN
from consumer.worker.member import Listener, Member
from consumer.worker.nursery import Birth, Death, Nursery
from consumer.worker.overtime import Overtime
from consumer.worker.run import Run
from consumer.worker.vigil import Vigil
from consumer.worker.wire import Frame, Type, WireError

_REASONS = {WORN: "recycle", HALF_DONE: "timeout"}


class CpuMember(Member):
    """The first of `queue` runs, for a child claims a ticket only when it can begin; unless its ticket can still be
    taken back, or its child died between the two, which it notes.
    """

    sort = Sort.CPU

    def __init__(self, birth: Birth, nursery: Nursery, listener: Listener, clock: Clock, config: PoolConfig) -> None:
        super().__init__(birth, nursery, listener, clock, config)
        self._memory_limit = birth.memory_limit
        self._cpu_limit = config.cpu_limit
        self._latest_kind = ""
        self._overtime = Overtime(self, config.kill_grace, self._overrun)
        self._vigil = Vigil(self, lambda: self.kill("stopped"), self._weigh)

    @property
    def first(self) -> Run | None:
        return self.queue[0] if self.queue else None

    @property
    def running(self) -> list[Run]:
        return [self.queue[0]] if self.queue else []

    def has_begun(self, run: Run) -> bool:
        """For the first of the queue: whether its child got further than taking its ticket."""
        return self._mark.who == run.id

    def interrupt(self, run: Run) -> None:
        self._tickets.wish_end(run.id)
        if run is self.first:
            self._overtime.watch(run)

    # hearing

    def _hear(self, frame: Frame) -> None:
        match frame.type:
            case Type.OUT_OF_MEMORY:
                self.kill("out_of_memory")
            case Type.LEAVING:
                self._goes(frame.meta.decode())
            case _:
                super()._hear(frame)

    def _finished(self, job_id: int) -> Run:
        if not self.queue or self.queue[0].id != job_id:
            raise WireError(f"job {job_id} does not run there")
        run = self.queue.popleft()
        self._latest_kind = run.work.job.kind
        return run

    def _watch(self) -> None:
        """The clock of its execution timeout starts now."""
        if self.queue and not self.queue[0].started:
            self.queue[0].begin(self._loop.time(), self._clock())
            self._overtime.watch(self.queue[0])
            self._vigil.start()

    def _goes(self, damage: str) -> None:
        """By itself, after a job that changed what can't be put back. Nothing that it was sent has begun."""
        self._reason = self._reason or _REASONS.get(damage, "damaged")
        self.dismiss()
        self._listener.child_leaving(self, damage, self._latest_kind)

    def _weigh(self, run: Run, held: int) -> None:
        """Shared memory and the like is held, but no data that the kernel would have refused."""
        self._listener.run_weighed(run, held - self.base_memory)
        if self._memory_limit and held > self._memory_limit:
            self.kill("out_of_memory")

    # overtime

    def _overrun(self, run: Run, number: int) -> None:
        """The handler did not mind the exception. SIGTERM may leave the child alive: it is ours until SIGKILL."""
        if not self.has_begun(run):  # the child is stopped, or somebody took the ticket away
            self.kill("stopped")
            return
        run.overran = True
        if number == signal.SIGTERM:
            self._nursery.kill(self.pid, number)
        else:
            self.kill(run.overran_by)

    # the end

    def _charge(self, begun: deque[Run], death: Death) -> list[Run]:
        self._overtime.stop()
        self._vigil.stop()
        if begun and (self._did_it(begun[0]) or begun[0].cancelled or begun[0].is_lost_again()):
            running = begun.popleft()
            outcome = self._last_outcome(running, death)
            if isinstance(outcome, TimedOut):
                self._reason = running.overran_by
            self._listener.run_over(self, running, outcome)
        for run in begun:
            run.undo()
        return [*begun]

    def _did_it(self, first: Run) -> bool:
        """Nonsense is of the first in any case: what it says is read in order."""
        return self._garbled or self.has_begun(first)

    def _last_outcome(self, run: Run, death: Death) -> Outcome:
        killed_by = os.WTERMSIG(death.status or 0)
        if self._cpu_limit and killed_by == signal.SIGXCPU and not run.overran:
            return runs.spent_its_cpu(self._cpu_limit, self._usage(run, death))
        return super()._last_outcome(run, death)
