"""Jobs that change their process, or leave something behind in it; and jobs that tell how they find it."""

import ctypes
import faulthandler
import gc
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextvars import ContextVar
from decimal import Decimal, getcontext
from pathlib import Path
from typing import Any

from consumer import job

_kept: list[Any] = []
_told: ContextVar[str] = ContextVar("told", default="")


@job("surroundings", timeout=10)
def surroundings(payload: Any) -> dict[str, Any]:
    """All that the next job could notice."""
    umask = os.umask(0)
    os.umask(umask)
    with Path("/dev/null").open() as file:
        lowest = file.fileno()
    return {
        "cwd": str(Path.cwd()),
        "environment": dict(os.environ),
        "umask": umask,
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "handlers": [str(signal.getsignal(number)).partition(" at ")[0] for number in range(1, 32)],
        "timers": [signal.getitimer(timer)[1] for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)],
        "limits": [resource.getrlimit(number) for number in range(16)],
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "threads": threading.active_count(),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text().split(),
        "stdout": type(sys.stdout).__name__,
        "recursion": sys.getrecursionlimit(),
        "traced": sys.gettrace() is not None or sys.getprofile() is not None,
        "collected": gc.isenabled(),
        "patience of sockets": socket.getdefaulttimeout(),
        "decimals": str(Decimal(1) / 3),
        "context": _told.get(),
        "lowest free descriptor": lowest,
    }


@job("changes", timeout=10)
def changes(payload: str) -> int:
    """Do something to this process that a job may well do, and return who it is."""
    globals()[f"_{payload}"]()
    return os.getpid()


def _process_wide() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
    os.environ["LANG"] = "tlh"
    os.environ["ADDED"] = "1"
    os.environ.pop("PATH", None)
    os.umask(0o777)


def _library() -> None:
    """As people do who mock in production."""
    json.loads = json.dumps = None  # type: ignore[assignment]
    time.time = time.monotonic = lambda: 0.0
    signal.setitimer = None  # type: ignore[assignment]


def _signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, lambda *_: os._exit(9))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGTERM})
    signal.setitimer(signal.ITIMER_PROF, 0.05, 0.05)


def _interpreter() -> None:
    time.sleep(0.06)  # the last line of an earlier run would have ended us by now
    sys.setrecursionlimit(100)
    sys.setprofile(lambda *_: None)
    gc.disable()
    socket.setdefaulttimeout(0.001)
    getcontext().prec = 3
    _told.set("by another job")
    faulthandler.dump_traceback_later(0.05, exit=True)


def _stdout() -> None:
    sys.stdout = None


def _dead_process() -> None:
    _kept.append(subprocess.Popen(["true"]))


def _thread() -> None:
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()


def _short_thread() -> None:
    threading.Thread(target=time.sleep, args=(0.01,)).start()


def _process() -> None:
    _kept.append(subprocess.Popen(["sleep", "1000"]))


def _daemon() -> None:
    """One that left the group, and whose parent is gone."""
    subprocess.run(["setsid", "--fork", "sleep", "1000"], check=True)


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def _nice() -> None:
    os.nice(5)


def _closed_input() -> None:
    os.close(0)


def _leaked() -> None:
    _kept.extend(os.dup(1) for _ in range(200))


def _ticket_socket() -> None:
    os.close(_sockets()[socket.SOCK_SEQPACKET])


def _report_socket() -> None:
    os.close(_sockets()[socket.SOCK_STREAM])


def _replaced_ticket_socket() -> None:
    other, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    _kept.extend((other, end))
    os.dup2(other.fileno(), _sockets()[socket.SOCK_SEQPACKET])


def _replaced_output() -> None:
    with Path("/dev/null").open("w") as null:
        os.dup2(null.fileno(), 1)


def _output_for_a_while() -> None:
    before = os.dup(1)
    _replaced_output()
    os.dup2(before, 1)
    os.close(before)


def _sockets() -> dict[int, int]:
    """The oldest descriptors of each type of socket: those that connect us with the daemon."""
    found: dict[int, int] = {}
    for name in sorted((entry.name for entry in Path("/proc/self/fd").iterdir()), key=int):
        if (Path("/proc/self/fd") / name).is_socket():
            with socket.socket(fileno=os.dup(int(name))) as copy:
                found.setdefault(copy.type, int(name))
    return found


@job("kills_zygote", timeout=10)
def kills_zygote(payload: Any) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10)


@job("executes", timeout=10)
def executes(payload: Any) -> None:
    os.execvp("sleep", ["sleep", "1000"])


@job("aborts", timeout=10)
def aborts(payload: Any) -> None:
    os.abort()


@job("steals_ticket", timeout=10)
def steals_ticket(payload: Any) -> int:
    """Read what was meant for the daemon's own loop, once it is there."""
    with socket.socket(fileno=os.dup(_sockets()[socket.SOCK_SEQPACKET])) as tickets:
        return len(tickets.recv(100_000))


@job("waits_for_its_sockets", timeout=10)
def waits_for_its_sockets(payload: Any) -> list[bool]:
    """Without a look through Python's eyes, which may change it."""
    sockets = [path for path in Path("/proc/self/fd").iterdir() if path.is_socket()]
    return [os.get_blocking(int(path.name)) for path in sockets]


@job("writes_into_its_reports", timeout=10)
def writes_into_its_reports(payload: str) -> None:
    os.write(_sockets()[socket.SOCK_STREAM], payload.encode("latin-1"))


@job("spins", timeout=60)
def spins(payload: float) -> None:
    """Use that many seconds of CPU."""
    end = time.process_time() + payload
    while time.process_time() < end:
        pass


@job("spins_in_c", timeout=60)
def spins_in_c(payload: Any) -> None:
    """One call that no exception of Python's interrupts."""
    ctypes.CDLL(None).qsort.restype = None
    sum(range(10**12))


@job("opens", timeout=10)
def opens(payload: int) -> int:
    return len([os.dup(1) for _ in range(payload)])


@job("shares_memory", timeout=30)
def shares_memory(payload: int) -> None:
    """Memory that doesn't count as data of the process."""
    import mmap

    shared = mmap.mmap(-1, payload)
    for start in range(0, payload, 4096):
        shared[start] = 1
    time.sleep(20)


@job("reserves", timeout=10)
def reserves(payload: int) -> int:
    """Map far more than there is, as libraries do, and use next to nothing of it. 0x4000 is MAP_NORESERVE."""
    import mmap

    with mmap.mmap(-1, payload, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ):
        return payload


@job("holds", timeout=10)
def holds(payload: int) -> int:
    """Keep so many bytes for good."""
    _kept.append(b"x" * payload)
    return os.getpid()


@job("needs", timeout=30)
def needs(payload: dict[str, Any]) -> None:
    """So many bytes for so many seconds."""
    taken = b"x" * payload["bytes"]
    time.sleep(payload["seconds"])
    del taken
