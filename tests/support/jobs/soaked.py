"""Eight kinds that misbehave, and one that would suffer from it; how each ends is known beforehand."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from consumer import job


def _surroundings() -> tuple[str, dict[str, str], int, str]:
    os.umask(umask := os.umask(0))
    return str(Path.cwd()), dict(os.environ), umask, str(signal.getsignal(signal.SIGTERM))[:20]


_AT_FIRST = _surroundings()[:3]
_kept: list[Any] = []


@job("steady", timeout=20)
def steady(payload: int) -> int:
    """Fail where anything is left of another job."""
    around = _surroundings()
    if around[:3] != _AT_FIRST or ("_terminate" not in around[3] and "method" not in around[3]):
        raise RuntimeError(f"something is left behind: {around}")
    if threading.active_count() > 1:
        raise RuntimeError("a thread is left behind")
    time.sleep(0.001)
    return payload + 1


@job("dies", timeout=20)
def dies(payload: int) -> None:
    ways = (os.abort, lambda: os._exit(payload % 3), lambda: os.kill(os.getpid(), signal.SIGSEGV))
    ways[payload % 3]()
    time.sleep(20)


@job("overruns", timeout=0.1)
def overruns(payload: int) -> None:
    """Half of them don't mind the exception."""
    while True:
        try:
            time.sleep(20)
        except BaseException:
            if payload % 2:
                raise


@job("hungry", timeout=20)
def hungry(payload: int) -> None:
    kept = []
    while True:
        kept.append(bytearray(16 * 1024 * 1024))


@job("raises", timeout=20)
def raises(payload: int) -> None:
    raise (SystemExit(3), KeyboardInterrupt(), type("Odd", (Exception,), {})(threading.Lock()))[payload % 3]


@job("talks_nonsense", timeout=20)
def talks_nonsense(payload: int) -> Any:
    return (float("nan"), "\ud800", {1, 2}, _kept.append)[payload % 4]


@job("changes", timeout=20)
def changes(payload: int) -> int:
    os.chdir("/")
    os.umask(0o777)
    os.environ["SOAKED"] = "1"
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.write("")
    return payload


@job("leaves", timeout=20)
def leaves(payload: int) -> int:
    match payload % 4:
        case 0:
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        case 1:
            _kept.append(subprocess.Popen(["sleep", "1000"]))
        case 2:
            os.close(0)
        case _:
            _kept.extend(os.dup(1) for _ in range(100))
            _kept.append(b"x" * 10_000_000)
    return payload


@job("returns_much", timeout=20)
def returns_much(payload: int) -> str:
    return "x" * (1_000_000 + random.Random(payload).randrange(4_000_000))
