"""The soft half of an execution timeout, in the process of a test."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from consumer.worker.handler import JobTimeout
from consumer.worker.timer import overrun

_AT_ONCE = 0.001


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise JobTimeout in what runs longer, as a child does. Only the main thread can have signals.

    Whoever times the whole test, as pytest-timeout does, uses the same one; theirs goes on afterwards, and comes
    first where it is due first.
    """
    theirs = signal.getitimer(signal.ITIMER_REAL)[0]
    if threading.current_thread() is not threading.main_thread() or 0 < theirs <= seconds:
        yield
        return

    def ring(*_: object) -> None:
        raise JobTimeout(overrun(seconds))

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if theirs:
            signal.setitimer(signal.ITIMER_REAL, max(_AT_ONCE, theirs - (time.monotonic() - began)))
