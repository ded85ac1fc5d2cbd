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


class Wish(BaseModel):
    """One follow-up of the kind `mark`."""

    delay: float = 0.0
    queue: str | None = None


class Parent(Gated):
    wishes: list[Wish]
    gated: bool = False


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


@job("fails_first", timeout=30)
def fails_first(payload: Marked, context: JobContext) -> str:
    """Fail at the first attempt."""
    _mark(payload, context)
    return _not_at_first(context)


@job("fails_soon", timeout=30, backoff=4)
def fails_soon(payload: Marked, context: JobContext) -> str:
    """Fail at every attempt; the second is due after 2 to 4 s."""
    _mark(payload, context)
    raise ConnectionError("it always fails")


@job("goes_on", timeout=60)
def goes_on(payload: Marked, context: JobContext) -> str:
    """Say how far it is, and go on until it is cancelled."""
    _mark(payload, context)
    context.progress(0.25, "one of four")
    while not context.cancelled:
        time.sleep(0.01)
    return context.key


@job("parent", timeout=30)
def parent(payload: Parent, context: JobContext) -> str:
    """Ask for other jobs."""
    _mark(payload, context)
    while payload.gated and not Path(payload.gate).exists():
        time.sleep(0.01)
    for wish in payload.wishes:
        context.send("mark", {"marks": payload.marks}, delay=wish.delay, queue=wish.queue)
    return context.key


def _not_at_first(context: JobContext) -> str:
    if context.attempt == 1:
        raise ConnectionError("the first attempt fails")
    return context.key


def _mark(payload: Marked, context: JobContext) -> None:
    line = f"{context.key} {context.attempt} {os.getpid()} {time.time_ns() // 1_000_000}\n"
    marks = os.open(payload.marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(marks, line.encode())
    os.close(marks)
