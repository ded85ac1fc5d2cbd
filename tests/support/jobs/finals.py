"""Kinds with a single attempt: what goes wrong is final at once."""

import os
import signal
import time
from typing import Any

from consumer import job


@job("gives_up", timeout=10, max_attempts=1)
def gives_up(payload: Any) -> None:
    raise ConnectionError("the partner is away")


@job("overruns", timeout=0.3, max_attempts=1)
def overruns(payload: Any) -> None:
    time.sleep(1e9)


@job("dies", timeout=10, max_attempts=1)
def dies(payload: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@job("hungry", timeout=30, max_attempts=1)
def hungry(payload: Any) -> None:
    kept = []
    while True:
        kept.append(bytearray(16 * 1024 * 1024))
