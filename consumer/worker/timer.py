"""The soft half of the limits of time, inside the child; the hard half is the parent's, of CPU time the kernel's."""

import math
import os
import signal
from resource import RLIMIT_CPU, getrlimit, setrlimit
from signal import ITIMER_PROF, ITIMER_REAL, setitimer
from time import process_time
from types import FrameType

from consumer.worker.handler import JobTimeout

TIMED_OUT, CANCELLED, SPENT = b"timeout", b"cancelled", b"spent"
"""Why a job in an io child ends before its time; for the first two the parent says so."""


class RunTimer:
    """Raises JobTimeout in the handler, once, when its time is over, and never outside of a run.

    `verdict` is the text for people where the last run took too long. `cpu_limit`: seconds of CPU a run, 0 for any.
    """

    def __init__(self, cpu_limit: float = 0.0) -> None:
        self.verdict: str | None = None
        self._cpu_limit = cpu_limit
        self._timeout = 0.0
        self._in_run = False

    def install(self) -> None:
        """Once a child: where a handler puts its own in place of these, the parent's SIGKILL is still to come."""
        signal.signal(signal.SIGALRM, self._alarm)
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGPROF, self._spent)
        signal.signal(signal.SIGVTALRM, lambda *_: None)  # such a timer that a job leaves behind would end the next one

    def start(self, timeout: float) -> None:
        self._timeout = timeout
        self.verdict = None
        self._in_run = True
        setitimer(ITIMER_REAL, timeout)
        if self._cpu_limit:
            self._limit_cpu()

    def stop(self) -> None:
        self._in_run = False
        setitimer(ITIMER_REAL, 0)
        if self._cpu_limit:
            setitimer(ITIMER_PROF, 0)

    def _limit_cpu(self) -> None:
        """An exception first. What doesn't mind it, as C code, is ended by the kernel, which counts whole seconds."""
        setitimer(ITIMER_PROF, self._cpu_limit)
        until = math.ceil(process_time() + self._cpu_limit) + 1
        setrlimit(RLIMIT_CPU, (until, getrlimit(RLIMIT_CPU)[1]))

    def _alarm(self, _number: int, _frame: FrameType | None) -> None:
        self._interrupt(overrun(self._timeout))

    def _spent(self, _number: int, _frame: FrameType | None) -> None:
        if self._cpu_limit:
            self._interrupt(spent(self._cpu_limit))

    def _interrupt(self, verdict: str) -> None:
        if self._in_run and self.verdict is None:
            self.verdict = verdict
            raise JobTimeout(verdict)

    def _terminate(self, number: int, _frame: FrameType | None) -> None:
        """Only a job that is out of time is ended by SIGTERM.

        A service manager that stops the daemon sends it to every process; jobs must be able to finish then.
        """
        if self._in_run and self.verdict is not None:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def overrun(timeout: float) -> str:
    return f"the job ran longer than its execution timeout of {timeout:g} s"


def spent(limit: float) -> str:
    return f"the job used more CPU time than its limit of {limit:g} s (pool.cpu_limit_seconds)"
