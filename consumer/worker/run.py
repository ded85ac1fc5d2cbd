"""One job on its way through the pool."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from math import inf
from typing import Any

from consumer.core.job import Fault
from consumer.core.outcome import Crashed, Failed, Interrupted, Outcome, TimedOut, Usage
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.timer import overrun, spent
from consumer.worker.wire import HEADER, TICKET_LIMIT, USAGE, Type, head
from schemas.codes import Code

_SUSPECT_AFTER = 4
_LOSSES = 3


class Run:
    """`started` is on the loop's clock, `started_at` in epoch ms; both 0 until it is the first at its child.

    `cancelled_at` is on the loop's clock too. `said` is how many bytes of it went into the log.
    `ends` counts the ends of io children that any of several runs may have caused, this one among them: 2 for each,
    or 1 where it may have come from outside.
    """

    __slots__ = (
        "_over",
        "cancelled_at",
        "ends",
        "id",
        "losses",
        "outcome",
        "overran",
        "said",
        "settled",
        "sort",
        "started",
        "started_at",
        "work",
    )

    def __init__(self, number: int, work: Work, sort: Sort, over: Callable[[], None]) -> None:
        self.id = number
        self.work = work
        self.sort = sort
        self.ends = 0
        self.losses = 0
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.started = 0.0
        self.started_at = 0
        self.overran = False
        self.cancelled_at = inf
        self.said = 0
        self.settled = False
        self._over = over

    @property
    def suspect(self) -> bool:
        """Once may be somebody else's fault; who is there again runs without company."""
        return self.ends >= _SUSPECT_AFTER

    @property
    def ends_at(self) -> float:
        """When its time is over, if it has begun."""
        return min(self.started + self.work.timeout, self.cancelled_at)

    @property
    def cancelled(self) -> bool:
        return self.cancelled_at < inf

    @property
    def overran_by(self) -> str:
        """Why its child is ended, as a label of child_exits_total."""
        return "cancel" if self.cancelled else "timeout"

    def begin(self, moment: float, at: int) -> None:
        if not self.started:
            self.started, self.started_at = moment, at

    def undo(self) -> None:
        """It never began, or will begin anew."""
        self.started, self.started_at, self.overran = 0.0, 0, False

    def was_there(self, *, perhaps_outside: bool) -> None:
        """An io child ended, and it may have been this one's doing."""
        self.ends += 1 if perhaps_outside else 2

    def is_lost_again(self) -> bool:
        """Whether its child died, once more, between taking the ticket and beginning: that is no accident any more."""
        self.losses += 1
        return self.losses > _LOSSES

    def settle(self, outcome: Outcome) -> None:
        """The first outcome counts; one that comes later, from a child that was given up, changes nothing."""
        if self.settled:
            return
        self.settled = True
        if self.cancelled:
            outcome = Interrupted("cancelled")
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
    """The outcome that a child described; a job can write one too, and then it may be nonsense, which raises."""
    match said:
        case {"code": code, "type": str(name), "message": str(message), "traceback": str(told)}:
            fault = Fault(Code(code), name, message, told)
        case _:
            raise TypeError("this is no failure")
    usage = Usage(*USAGE.unpack(USAGE.pack(*said["usage"])))
    if fault.code is Code.EXECUTION_TIMEOUT:
        return TimedOut(fault, usage)
    return Failed(
        fault,
        usage,
        said.get("retryable"),
        said.get("after"),
        tuple(map(str, said["types"])),
        said.get("http_status"),
        said.get("dependency"),
    )


def timed_out(run: Run, usage: Usage) -> TimedOut:
    return TimedOut(Fault(Code.EXECUTION_TIMEOUT, "JobTimeout", overrun(run.work.timeout)), usage)


def spent_its_cpu(limit: float, usage: Usage) -> TimedOut:
    return TimedOut(Fault(Code.EXECUTION_TIMEOUT, "JobTimeout", spent(limit)), usage)


def held_up(seconds: float, usage: Usage) -> TimedOut:
    text = f"the job held up the event loop of its child for {seconds:g} s: wait with await, or use a def handler"
    return TimedOut(Fault(Code.EXECUTION_TIMEOUT, "JobTimeout", text), usage)


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
