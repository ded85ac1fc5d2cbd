"""One job on its way through the pool."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

from consumer.core.job import Fault
from consumer.core.outcome import Crashed, Failed, Outcome, TimedOut, Usage
from consumer.core.ports import Work
from consumer.worker.timer import overrun
from consumer.worker.wire import HEADER, TICKET_LIMIT, Type, head
from schemas.codes import Code


class Run:
    """`started` is on the loop's clock, `started_at` in epoch ms; both 0 until it is the first at its child."""

    __slots__ = ("_over", "id", "outcome", "overran", "settled", "started", "started_at", "work")

    def __init__(self, number: int, work: Work, over: Callable[[], None]) -> None:
        self.id = number
        self.work = work
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.started = 0.0
        self.started_at = 0
        self.overran = False
        self.settled = False
        self._over = over

    def begin(self, moment: float, at: int) -> None:
        if not self.started:
            self.started, self.started_at = moment, at

    def undo(self) -> None:
        """It never began: its ticket was taken back."""
        self.started, self.started_at, self.overran = 0.0, 0, False

    def settle(self, outcome: Outcome) -> None:
        """The first outcome counts; one that comes later, from a child that was given up, changes nothing."""
        if self.settled:
            return
        self.settled = True
        if not self.outcome.done():
            self.outcome.set_result(outcome)
        self._over()


def ticket(run: Run) -> tuple[bytes, bytes]:
    """The packet that lets a child start this run, and the frame with its body where that is too long for it."""
    job = run.work.job
    order = {
        "kind": job.kind,
        "key": job.key,
        "attempt": run.work.attempt,
        "timeout": run.work.timeout,
        "deadline": job.deadline,
        "payload": job.payload,
    }
    meta = json.dumps(order).encode()
    if HEADER.size + len(meta) + len(job.body) <= TICKET_LIMIT:
        return head(Type.JOB, run.id, meta) + job.body, b""
    return head(Type.LONG_JOB, run.id, meta), head(Type.BODY, run.id, b"", len(job.body)) + job.body


def failure(said: dict[str, Any]) -> Failed | TimedOut:
    """The outcome that a child described."""
    usage = Usage(*said["usage"])
    fault = Fault(Code(said["code"]), said["type"], said["message"], said["traceback"])
    if fault.code is Code.EXECUTION_TIMEOUT:
        return TimedOut(fault, usage)
    return Failed(fault, usage, said.get("retryable"), said.get("after"), tuple(said["types"]))


def timed_out(run: Run, usage: Usage) -> TimedOut:
    return TimedOut(Fault(Code.EXECUTION_TIMEOUT, "JobTimeout", overrun(run.work.timeout)), usage)


def crashed(how: str, usage: Usage, *, out_of_memory: bool) -> Crashed:
    if out_of_memory:
        return Crashed(Fault(Code.OUT_OF_MEMORY, "MemoryError", "the job passed the memory limit of a child"), usage)
    return Crashed(Fault(Code.WORKER_CRASHED, "WorkerCrashed", f"the child {how} while it ran the job"), usage)


def how_it_ended(status: int) -> str:
    """A wait status in words."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
