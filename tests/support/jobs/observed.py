"""Jobs that leave a mark outside, so that a test counts executions itself, and jobs that wait for a test's word."""

import os
import time
from pathlib import Path

from pydantic import BaseModel

from consumer import JobContext, job


class Marked(BaseModel):
    """`marks`: a file that gets one line an execution."""

    marks: str


class Gated(Marked):
    """`gate`: a file; while it isn't there the job goes on."""

    gate: str


@job("mark", timeout=30)
def mark(payload: Marked, context: JobContext) -> str:
    _mark(payload, context)
    return context.key


@job("wait_for_gate", timeout=60, backoff=0.5)
def wait_for_gate(payload: Gated, context: JobContext) -> str:
    _mark(payload, context)
    while not Path(payload.gate).exists():
        time.sleep(0.01)
    return context.key


@job("fails_at_gate", timeout=60, backoff=0.5)
def fails_at_gate(payload: Gated, context: JobContext) -> str:
    """Fail at the first attempt, once the gate is open."""
    wait_for_gate(payload, context)
    return _not_at_first(context)


@job("fails_first", timeout=30, backoff=26)
def fails_first(payload: Marked, context: JobContext) -> str:
    """Fail at the first attempt; the second is due after 8 to 16 s."""
    _mark(payload, context)
    return _not_at_first(context)


def _not_at_first(context: JobContext) -> str:
    if context.attempt == 1:
        raise ConnectionError("the first attempt fails")
    return context.key


def _mark(payload: Marked, context: JobContext) -> None:
    line = f"{context.key} {context.attempt} {os.getpid()} {time.time_ns() // 1_000_000}\n"
    marks = os.open(payload.marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(marks, line.encode())
    os.close(marks)
