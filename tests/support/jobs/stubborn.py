"""Jobs that don't end when their time is over."""

import ctypes
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from consumer import job
from consumer.worker.handler import JobTimeout

_lock = threading.Lock()


@job("busy", timeout=10)
def busy(payload: Any) -> None:
    while True:
        pass


@job("sleeps_forever", timeout=10)
def sleeps_forever(payload: Any) -> None:
    time.sleep(1e9)


@job("swallows_exceptions", timeout=10)
def swallows_exceptions(payload: str) -> None:
    """A broad handler in a loop, as people write it; the timeout is no Exception and passes."""
    while True:
        try:
            time.sleep(1e9)
        except Exception:  # noqa: BLE001 - the point
            Path(payload).write_text("swallowed")


@job("takes_the_lock", timeout=10)
def takes_the_lock(payload: float) -> bool:
    """And gives it back, unless something happens meanwhile."""
    taken = _lock.acquire(blocking=False)
    time.sleep(payload)
    _lock.release()
    return taken


@job("returns_late", timeout=10)
def returns_late(payload: Any) -> str:
    with suppress(JobTimeout):
        time.sleep(1e9)
    return "too late"


@job("ignores_timeout", timeout=10)
def ignores_timeout(payload: Any) -> None:
    """Minds neither the exception nor, being at it again, a second one; SIGTERM ends it."""
    while True:
        try:
            time.sleep(1e9)
        except JobTimeout:
            continue


@job("ignores_sigterm", timeout=10)
def ignores_sigterm(payload: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        time.sleep(1e9)


@job("runs_a_program", timeout=10)
def runs_a_program(payload: Any) -> None:
    """In a group of its own, as daemons are."""
    subprocess.run(["sleep", "1000"], check=True, start_new_session=True)


@job("stuck_in_c", timeout=10)
def stuck_in_c(payload: Any) -> None:
    """A C call that signals don't interrupt: no Python handler gets a turn."""
    libc = ctypes.CDLL(None)
    every = (ctypes.c_ulong * 16)(*[2**64 - 1] * 16)
    libc.sigprocmask(0, ctypes.byref(every), None)
    while True:
        libc.sleep(1000)
