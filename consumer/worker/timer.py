"""The soft half of the execution timeout, inside the child; the hard half is the parent's."""

import os
import signal
import time
from types import FrameType

from consumer.worker.handler import JobTimeout


class RunTimer:
    """Raises JobTimeout in the handler, once, when its time is over, and never outside of a run."""

    def __init__(self) -> None:
        self.expires = 0.0
        self.fired = False
        self._timeout = 0.0
        self._in_run = False

    def install(self) -> None:
        """Once a child: where a handler puts its own in place of these, the parent's SIGKILL is still to come."""
        signal.signal(signal.SIGALRM, self._alarm)
        signal.signal(signal.SIGTERM, self._terminate)

    def start(self, timeout: float) -> None:
        self._timeout = timeout
        self.expires = time.monotonic() + timeout
        self.fired = False
        self._in_run = True
        signal.setitimer(signal.ITIMER_REAL, timeout)

    def stop(self) -> None:
        self._in_run = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    @property
    def verdict(self) -> str | None:
        """The text for people, where the last run took too long."""
        return overrun(self._timeout) if self.fired else None

    def _alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._in_run and not self.fired:
            self.fired = True
            raise JobTimeout(overrun(self._timeout))

    def _terminate(self, number: int, _frame: FrameType | None) -> None:
        """Only a job that is out of time is ended by SIGTERM.

        A service manager that stops the daemon sends it to every process; jobs must be able to finish then.
        No SIG_IGN, for programs that a job starts would inherit it.
        """
        if self._in_run and self.fired:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def overrun(timeout: float) -> str:
    return f"the job ran longer than its execution timeout of {timeout:g} s"
