"""One run of a handler in this process, by the steps of a child: check, call under a clock, check the result."""

import asyncio
import json
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import astuple, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from consumer.core.outbox import FollowUp
from consumer.core.outcome import Interrupted, Outcome, Succeeded, Usage
from consumer.core.ports import Clock, Work
from consumer.core.retry import CANCELLED
from consumer.testing.alarm import alarm
from consumer.testing.stage import DEFAULTS, LogLine, NotedStage, ProgressMark, heard
from consumer.worker import failure, follow_ups
from consumer.worker.context import JobContext
from consumer.worker.handler import JobTimeout
from consumer.worker.loading import Kind
from consumer.worker.payload import checked, encoded
from consumer.worker.run import crashed
from consumer.worker.run import failure as described
from consumer.worker.timer import overrun

OUTCOMES = (Exception, SystemExit, JobTimeout, asyncio.CancelledError)
"""What a run can end with. Anything else, as Ctrl-C or `pytest.fail`, is about the test and not about the handler."""
_OURS = __file__


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a run, and what the handler said meanwhile. `tempdir` is gone by now."""

    outcome: Outcome
    exception: BaseException | None
    progress: tuple[ProgressMark, ...]
    logs: tuple[LogLine, ...]
    tempdir: Path | None


def rehearse(rehearsal: "Rehearsal") -> Ran:
    """Run a `def` handler. Where an event loop runs in this thread, the handler can't have one of its own."""
    with rehearsal, alarm(rehearsal.work.timeout):
        rehearsal.result = encoded(rehearsal.call(), DEFAULTS.result_limit)
    return rehearsal.ran()


async def rehearse_async(rehearsal: "Rehearsal") -> Ran:
    """Run an `async def` handler. What it leaves in the loop is cancelled, as in a child."""
    others = asyncio.all_tasks()
    with rehearsal:
        call = cast("Coroutine[Any, Any, Any]", rehearsal.call())
        main = rehearsal.main = asyncio.ensure_future(_ended(call))
        await asyncio.wait([main], timeout=rehearsal.work.timeout)
        while unfinished := asyncio.all_tasks() - others:
            for task in unfinished:
                task.cancel()
            await asyncio.wait(unfinished)
        value, error = main.result()
        if error is not None:
            raise error
        rehearsal.result = encoded(value, DEFAULTS.result_limit)
    return rehearsal.ran()


async def _ended(handler: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    """An exception as a value: SystemExit would end the loop."""
    try:
        return await handler, None
    except OUTCOMES as error:
        return None, error


class _Context(JobContext):
    """The deadline is on the clock of the test, which may be another one than the machine's."""

    __slots__ = ("_clock",)

    def __init__(self, work: Work, expires: float, stage: NotedStage, clock: Clock) -> None:
        job = work.job
        super().__init__(job.kind, job.key, work.attempt, job.deadline, expires, stage)
        self._clock = clock

    def time_left(self) -> float:
        left = self.expires - time.monotonic()
        if self.deadline is not None:
            left = min(left, (self.deadline - self._clock()) / 1000)
        return max(0.0, left)


class Rehearsal:
    """Enter it for the run. It keeps what the run ends with, and raises only what isn't about the handler."""

    def __init__(self, kind: Kind, work: Work, clock: Clock, *, cancelled: bool = False) -> None:
        self.result = b""
        self.exception: BaseException | None = None
        self.work = work
        self.main: asyncio.Future[Any] | None = None
        self._kind, self._clock = kind, clock
        self._stage = NotedStage(cancelled=cancelled)
        self._logs: list[LogLine] = []
        self._around = ExitStack()
        self._started_at = clock()
        self._overran = False
        self._context = _Context(work, time.monotonic() + work.timeout, self._stage, clock)

    def call(self) -> object:
        """Check the payload, and call the handler with it."""
        job = self.work.job
        return self._kind.call(checked(self._kind, job.body, job.payload, DEFAULTS.max_depth), self._context)

    def __enter__(self) -> None:
        self._around.callback(self._stage.close)
        self._around.enter_context(heard(self._logs))

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> bool:
        self._overran = time.monotonic() >= self._context.expires
        self._around.close()
        if error is None and self._overran:
            error = JobTimeout("the handler went on after its timeout")
        self.exception = error
        return error is None or isinstance(error, OUTCOMES)

    def cancel(self) -> None:
        """Somebody cancelled the job while it runs: an `async def` handler also hears it at its next await."""
        self._stage.cancel()
        if self.main is not None:
            self.main.cancel()

    def ran(self) -> Ran:
        said = self._stage
        return Ran(self._outcome(), self.exception, tuple(said.progress), tuple(self._logs), said.tempdir)

    def _outcome(self) -> Outcome:
        usage = Usage(self._started_at, self._clock())
        if self._stage.cancelled():
            return Interrupted(CANCELLED)
        if self.exception is None:
            return Succeeded(self.result, usage, self._follow_ups())
        if isinstance(self.exception, MemoryError):
            return crashed("", usage, out_of_memory=True)
        error, timed_out = _from_the_handler_on(self.exception), None
        if self._overran:
            timed_out = overrun(self.work.timeout)
            if isinstance(error, asyncio.CancelledError):
                error = JobTimeout().with_traceback(error.__traceback__)
        said = failure.describe(error, timed_out) | {"usage": astuple(usage)}
        return described(json.loads(failure.encode(said)))

    def _follow_ups(self) -> tuple[FollowUp, ...]:
        asked = self._context.follow_ups
        text = b"" if asked is None else asked.encoded()
        return follow_ups.decoded(text) if text else ()


def _from_the_handler_on(error: BaseException) -> BaseException:
    """Our own lines at the beginning of a traceback tell nobody anything."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == _OURS:
        trace = trace.tb_next
    return error.with_traceback(trace)
