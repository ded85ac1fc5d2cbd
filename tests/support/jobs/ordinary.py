"""Jobs that succeed, fail, sleep and tell who they are."""

import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from consumer import JobContext, Reject, Retry, job


class Nap(BaseModel):
    """`mark`: a file that gets a line with our pid when the job starts."""

    seconds: float
    mark: str = ""


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    count: int


@job("echo", timeout=10)
def echo(payload: Any) -> Any:
    return payload


@job("whoami", timeout=10)
def whoami(payload: dict[str, Any], context: JobContext) -> dict[str, Any]:
    about = {"kind": context.kind, "key": context.key, "attempt": context.attempt, "deadline": context.deadline}
    return about | {"left": context.time_left(), "pid": os.getpid(), "group": os.getpgid(0)}


@job("sleep", timeout=60, max_attempts=3, retry_on=[OSError, "custom.Error"])
def sleep(payload: Nap) -> int:
    if payload.mark:
        with Path(payload.mark).open("a") as marks:
            marks.write(f"{os.getpid()}\n")
    time.sleep(payload.seconds)
    return os.getpid()


@job("flaky", timeout=10)
def flaky(payload: int, context: JobContext) -> int:
    """Fail `payload` times, then succeed."""
    if context.attempt <= payload:
        raise ConnectionError(f"attempt {context.attempt} fails")
    return context.attempt


@job("always_fails", timeout=10)
def always_fails(payload: Any) -> None:
    raise LookupError("it always fails")


@job("retry", timeout=10)
def retry(payload: float) -> None:
    raise Retry("the partner is busy", after=payload)


@job("reject", timeout=10)
def reject(payload: Any) -> None:
    raise Reject("there is no such account")


@job("strict", timeout=10)
def strict(payload: Strict) -> int:
    return payload.count


@job("modules", timeout=10)
def modules(payload: list[str]) -> list[str]:
    """Which of these are imported here."""
    return [name for name in payload if name in sys.modules]


@job("sockets", timeout=10)
def sockets(payload: Any) -> int:
    """How many sockets this child has open."""
    return sum(path.is_socket() for path in Path("/proc/self/fd").iterdir())
