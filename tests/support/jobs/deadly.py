"""Jobs that take their child with them, or try to."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from consumer import job


@job("sigkill", timeout=10)
def sigkill(payload: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@job("sigkill_after_result", timeout=10)
def sigkill_after_result(payload: int) -> str:
    """Die at some moment while a result of that many bytes is on its way."""
    signal.setitimer(signal.ITIMER_PROF, 0.0005)
    signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    return "x" * payload


@job("os_exit", timeout=10)
def os_exit(payload: int) -> None:
    os._exit(payload)


@job("sys_exit", timeout=10)
def sys_exit(payload: int) -> None:
    sys.exit(payload)


@job("segfault", timeout=10)
def segfault(payload: Any) -> None:
    ctypes.string_at(0)


@job("keyboard_interrupt", timeout=10)
def keyboard_interrupt(payload: Any) -> None:
    raise KeyboardInterrupt


@job("memory_error", timeout=10)
def memory_error(payload: Any) -> None:
    raise MemoryError


@job("memory_hog", timeout=30)
def memory_hog(payload: Any) -> None:
    kept = []
    while True:
        kept.append(bytearray(1024 * 1024))


@job("small_hog", timeout=30)
def small_hog(payload: Any) -> None:
    """Leaves no room for anything: the last allocations are tiny."""
    kept: list[Any] = []
    size = 64 * 1024 * 1024
    while size > 16:
        try:
            kept.append(bytearray(size))
        except MemoryError:
            size //= 2
    raise MemoryError


@job("grandchild", timeout=10)
def grandchild(payload: str) -> None:
    """Start a program that would outlive us, and die."""
    program = subprocess.Popen(["sleep", "1000"], close_fds=False)
    Path(payload).write_text(str(program.pid))
    os.kill(os.getpid(), signal.SIGKILL)


@job("forks", timeout=10)
def forks(payload: Any) -> str:
    """The copy returns too, and would go on as a second child on the same sockets."""
    os.fork()
    return "done"


@job("forks_a_copy_that", timeout=10)
def forks_a_copy_that(payload: str) -> str:
    """The copy goes on in our place for a while, and would speak for us."""
    if pid := os.fork():
        os.waitpid(pid, 0)
        return "done"
    if payload == "has no memory":
        raise MemoryError
    for number in range(3, 256):
        with suppress(OSError):
            if not Path(f"/proc/self/fd/{number}").is_socket():
                os.close(number)
    return "copy"


@job("ends_its_helpers", timeout=10)
def ends_its_helpers(payload: Any) -> list[int | None]:
    """A copy of us and a program, by signals that we don't mind ourselves."""
    copies = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)) for _ in range(20)]
    for copy in copies:
        copy.start()
        copy.terminate()
        copy.join()
    with subprocess.Popen(["sleep", "1000"]) as program:
        program.send_signal(signal.SIGINT)
    return [*{copy.exitcode for copy in copies}, program.returncode]


@job("closes_everything", timeout=10)
def closes_everything(payload: Any) -> None:
    os.closerange(3, 256)
