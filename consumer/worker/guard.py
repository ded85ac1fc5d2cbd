"""What a job left behind in its child: put back what can be, and say what can't, so that the child is replaced.

It is looked at after every job, so each line here is weighed in tenths of a microsecond. What a job can only do on
purpose and in a roundabout way, such as by calling the C library, is not looked for: it stays within its child.
"""

import _signal  # type: ignore[import-not-found]
import faulthandler
import gc
import os
import resource
import signal
import socket
import sys
import time
from _thread import _count as threads_running
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from consumer.worker import irreversible

SETTLE = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)
"""Pauses in seconds that a thread or a process gets to come to its end by itself."""
WORN = "descriptors"
"""No damage yet: the child goes before a leak becomes the next job's error."""
HALF_DONE = "what its timeout interrupted"
"""An exception that comes anywhere may leave a lock locked, and half an answer in a connection: nobody can tell."""
_SIGNALS = tuple(
    getattr(signal, f"SIG{name}")
    for name in ("HUP", "INT", "QUIT", "ABRT", "USR1", "USR2", "PIPE", "ALRM", "TERM", "CHLD", "XCPU", "VTALRM", "PROF")
)
"""Those for which people install handlers."""


def _opened(path: str) -> int | None:
    """Not every kernel has that file. Where it has, it is much faster than to ask for children and get an exception."""
    with suppress(OSError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return None


def _switches() -> tuple[int, Any, Any, bool, float | None]:
    """Of the interpreter, which people turn for one job and forget."""
    return sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), gc.isenabled(), socket.getdefaulttimeout()


def _turn(recursion: int, trace: Any, profile: Any, collecting: bool, patience: float | None) -> None:
    sys.setrecursionlimit(recursion)
    sys.settrace(trace)
    sys.setprofile(profile)
    gc.enable() if collecting else gc.disable()
    socket.setdefaulttimeout(patience)


class Guard:
    """`keep`: leave threads and processes that a job didn't end alone, since they are meant to stay."""

    def __init__(self, ours: Collection[int], *, keep: bool) -> None:
        """`ours`: the descriptors that we live by."""
        self._ours = (0, 1, 2, *ours)
        self._files = self._behind(self._ours)
        self._probe = self._ours[-1]
        self._keep = keep
        self._folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._variables: dict[bytes, bytes] = vars(os.environ)["_data"]  # to compare without decoding them all
        self._first_variables = self._variables.copy()
        self._handlers = [*map(_signal.getsignal, _SIGNALS)]
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        os.umask(umask := os.umask(0))
        self._umask = umask
        self._stdin = sys.stdin
        self._switches = _switches()
        self._threads = threads_running()
        self._children = _opened(f"/proc/self/task/{os.getpid()}/children")
        os.close(lowest := os.dup(self._probe))
        self._lowest_free = lowest
        self._too_many = max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2, lowest + 16)
        irreversible.done.clear()

    def look(self) -> str:
        """Put back what can be put back, and return what can't: nothing, where the next job may come."""
        try:
            self._restore()
            return self._descriptors() or self._leftovers() or (irreversible.done and self._lasting()) or ""
        except (OSError, TypeError) as error:  # TypeError: of a signal handler that Python doesn't know
            return f"what can't be put back: {error}"

    def _restore(self) -> None:
        os.fchdir(self._folder)
        if self._variables != self._first_variables:
            self._restore_environment()
        if [*map(_signal.getsignal, _SIGNALS)] != self._handlers:
            self._restore_handlers()
        _signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        os.umask(self._umask)
        sys.stdin = self._stdin
        faulthandler.cancel_dump_traceback_later()  # which may end the process, too
        if _switches() != self._switches:
            _turn(*self._switches)

    def _restore_environment(self) -> None:
        os.environ.clear()
        os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in self._first_variables.items()})

    def _restore_handlers(self) -> None:
        """With the timers that may call them."""
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        for number, handler in zip(_SIGNALS, self._handlers, strict=True):
            signal.signal(number, handler)

    def _descriptors(self) -> str:
        """The lowest free one tells: below what it was, one was closed; far above, some leak."""
        os.close(lowest := os.dup(self._probe))
        if lowest < self._lowest_free:
            return "closed descriptors"
        return WORN if lowest > self._too_many else ""

    def _lasting(self) -> str:
        """Descriptors may be what they were: people redirect their output for a while."""
        done = {*irreversible.done}
        irreversible.done.clear()
        if self._behind(self._ours) == self._files:
            done.discard(irreversible.DESCRIPTORS)
        return ", ".join(sorted(done))

    @staticmethod
    def _behind(descriptors: Collection[int]) -> list[tuple[int, int]]:
        files = [os.fstat(descriptor) for descriptor in descriptors]
        return [(file.st_dev, file.st_ino) for file in files]

    def _leftovers(self) -> str:
        """Threads and processes; those that are about to end may do so."""
        if self._keep:
            return ""
        left = self._left()
        for pause in SETTLE if left else ():
            time.sleep(pause)
            left = self._left()
            if not left:
                break
        return left

    def _left(self) -> str:
        if threads_running() > self._threads:
            return "threads"
        if self._children is not None and not os.pread(self._children, 1, 0):
            return ""
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return ""
        return "processes"
