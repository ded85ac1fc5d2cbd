"""One io child as the parent sees it: many runs at once, and the question who of them ended it."""

import os
import signal
from collections import deque

import structlog

from consumer.core.outcome import Outcome, Usage
from consumer.core.ports import Clock
from consumer.worker import run as runs
from consumer.worker.blame import NOBODY, Evidence, blame
from consumer.worker.catalogue import Sort
from consumer.worker.config import PoolConfig
from consumer.worker.io_watch import IoWatch
from consumer.worker.member import Listener, Member
from consumer.worker.nursery import Birth, Death, Nursery
from consumer.worker.run import Run
from consumer.worker.timer import CANCELLED, TIMED_OUT
from consumer.worker.wire import Frame, Type, WireError, head

_log = structlog.get_logger("consumer.worker")
_OF_ITS_OWN = {getattr(signal, f"SIG{name}") for name in ("SEGV", "BUS", "FPE", "ILL", "ABRT", "TRAP", "SYS")}


class IoMember(Member):
    """All that is in `queue` runs, unless its ticket can still be taken back."""

    sort = Sort.IO

    def __init__(
        self,
        birth: Birth,
        nursery: Nursery,
        listener: Listener,
        clock: Clock,
        config: PoolConfig,
    ) -> None:
        super().__init__(birth, nursery, listener, clock, config)
        self._looks = IoWatch(self, birth.mark, config.kill_grace, config.io_stall)
        self._stall = config.io_stall
        self._given_up = False
        self._stopped = False
        self._found = NOBODY

    @property
    def running(self) -> list[Run]:
        return [*self.queue]

    # what the watch asks for

    def hold(self) -> None:
        taken = self.steal()
        self.stolen_from = True
        self._outlet.write(head(Type.CANCEL, 0))  # of no job: something to do, to be seen at when it moves again
        self._listener.runs_back(taken)

    def release(self) -> None:
        if self.stolen_from:
            self.stolen_from = False
            self._listener.runs_back([])

    def cancel(self, run: Run) -> None:
        run.overran = True
        self._outlet.write(head(Type.CANCEL, run.id, CANCELLED if run.cancelled else TIMED_OUT))

    def give_up(self, guilty: frozenset[int], *, stopped: bool) -> None:
        if not self._given_up:
            self._given_up, self._stopped, self._found = True, stopped, guilty
        self.kill(next((run.overran_by for run in self.queue if run.id in guilty), "timeout"))

    def interrupt(self, run: Run) -> None:
        """The watch sees at its next look that its time is over."""

    # hearing

    def _hear(self, frame: Frame) -> None:
        match frame.type:
            case Type.LEAVING:
                self.retire()
                kinds = [run.work.job.kind for run in self.queue if run.id == frame.job_id]
                self._listener.child_leaving(self, frame.meta.decode(), "".join(kinds))
            case Type.OUT_OF_MEMORY:
                self.retire()
                run = self._finished(frame.job_id)
                usage = Usage(run.started_at, self._clock())
                self._listener.run_over(self, run, runs.crashed("", usage, out_of_memory=True))
            case _:
                super()._hear(frame)

    def _watch(self) -> None:
        """The clock of the one that was sent last starts now."""
        if self.queue:
            self.queue[-1].begin(self._loop.time(), self._clock())
            self._looks.start()

    def _finished(self, job_id: int) -> Run:
        for run in self.queue:
            if run.id == job_id:
                self.queue.remove(run)
                return run
        raise WireError(f"job {job_id} does not run there")

    # the end

    def _charge(self, begun: deque[Run], death: Death) -> list[Run]:
        """Tell what became of those who ended the child and of those whose time was over, whoever ended it.

        All others run again, uncharged.
        """
        self._looks.stop()
        guilty = self._guilty_of(begun, death)
        if self._looks.moves:  # else they could not mind
            guilty |= {run.id for run in begun if run.overran}
        for run in begun:
            if run.id in guilty:
                self._listener.run_over(self, run, self._last_outcome(run, death))
        innocent = [run for run in begun if run.id not in guilty]
        for run in innocent:
            run.undo()
        return innocent

    def _guilty_of(self, begun: deque[Run], death: Death) -> frozenset[int]:
        """Whoever surely ended it, or met too many kills."""
        if death.status is None:
            return frozenset(run.id for run in begun)
        evidence = self._evidence(begun, death.status)
        verdict = blame(evidence)
        guilty = verdict.guilty
        if evidence.perhaps_outside and not evidence.found:
            guilty = self._listener.child_killed(begun)
        if begun and not guilty:
            _log.warning("io_child_ended_by_nobody_known", pid=self.pid, suspects=len(verdict.suspects))
        for run in begun:
            if run.id in verdict.suspects:
                run.was_there(perhaps_outside=evidence.perhaps_outside)
        return guilty

    def _evidence(self, begun: deque[Run], status: int) -> Evidence:
        """What was at work tells nothing where we ended the child, or where a thread may have that nobody knows."""
        told = not (self._given_up or self.killed or self._mark.has_strangers)
        return Evidence(
            begun=frozenset(run.id for run in begun),
            found=self._found or self._mark.at_itself,
            seen=(self._mark.in_threads | {self._mark.who}) - {0} if told else NOBODY,
            perhaps_outside=self._stopped or (not self.killed and _anybody_could(status)),
            alone=any(run.suspect for run in begun),
        )

    def _last_outcome(self, run: Run, death: Death) -> Outcome:
        if run.overran or not self._given_up:
            return super()._last_outcome(run, death)
        return runs.held_up(self._stall, self._usage(run, death))


def _anybody_could(status: int) -> bool:
    """End a process like that. What its own code does wrong has signals that nobody sends."""
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) not in _OF_ITS_OWN
