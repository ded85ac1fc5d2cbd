"""An io child: takes jobs as they come and runs them in one event loop. It knows nothing but its two sockets."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
import traceback
from asyncio import wait
from collections import deque
from collections.abc import Mapping
from typing import Any, cast

from consumer.worker import failure, process
from consumer.worker.context import JobContext
from consumer.worker.execute import Limits
from consumer.worker.failure import Refused
from consumer.worker.guard import Guard
from consumer.worker.handler import JobTimeout
from consumer.worker.io_job import IoJob, JobTask
from consumer.worker.job_loop import JobLoop
from consumer.worker.loading import Kind
from consumer.worker.mark import Mark
from consumer.worker.payload import checked, encoded
from consumer.worker.report import report, usage
from consumer.worker.scope import Backstage
from consumer.worker.timer import CANCELLED, TIMED_OUT, overrun, spent
from consumer.worker.wire import TICKET_LIMIT, Frame, Parser, Type, head, whole

BEAT = 0.02
"""Seconds between two signs of life of a loop that waits."""
_ANY_LENGTH = 2**32
_Ended = tuple[dict[str, Any] | None, bytes]
"""What failed, or the result."""


def live(
    stream: socket.socket,
    tickets: socket.socket,
    mark: int,
    kinds: Mapping[str, Kind],
    limits: Limits,
    place: str,
) -> None:
    """Be an io child of the pool, in a process that was just forked, until the parent lets go of us."""
    os.setpgid(0, 0)
    process.mind_no_signals()
    process.let_copies_end()
    for number in (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF):
        signal.signal(number, lambda *_: None)  # of a timer left behind; SIG_IGN is inherited
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    seen = Mark(mark)
    os.close(mark)
    if sys.version_info < (3, 14):
        asyncio.set_event_loop_policy(None)  # of another one, as uvloop's, our loop could start no programs
    loop = JobLoop(seen)
    asyncio.set_event_loop(loop)
    for end in (stream, tickets):
        end.setblocking(False)
    backstage = Backstage.in_child(tickets, limits.log, place, one_by_one=False)
    guard = Guard(
        (stream.fileno(), tickets.fileno()), keep=True
    )  # our own threads come and go, and so do programs that jobs run
    child = IoChild(tickets, kinds, limits, backstage, seen, loop, guard)
    loop.run_until_complete(loop.create_unix_connection(lambda: child, sock=stream))
    try:
        while True:  # whoever asks the loop to stop
            loop.run_forever()
    finally:
        seen.enter_unknown()  # somebody closed what it needs, or has a signal handler that raises


class IoChild(asyncio.Protocol):
    def __init__(
        self,
        tickets: socket.socket,
        kinds: Mapping[str, Kind],
        limits: Limits,
        backstage: Backstage,
        mark: Mark,
        loop: JobLoop,
        guard: Guard,
    ) -> None:
        self._tickets = tickets
        self._kinds = kinds
        self._limits = limits
        self._backstage = backstage
        self._mark = mark
        self._loop = loop
        self._guard = guard
        self._parser = Parser(_ANY_LENGTH)
        self._bodies: deque[Frame] = deque()
        self._bodiless: deque[Frame] = deque()
        self._jobs: dict[int, IoJob] = {}
        self._attending: set[asyncio.Task[None]] = set()
        self._beating = False
        self._last = False

    # hearing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(head(Type.READY, 0))
        self._loop.add_reader(self._tickets, self._claim)

    def data_received(self, data: bytes) -> None:
        for frame in self._parser.feed(data):
            if frame.type == Type.BODY:
                self._bodies.append(frame)
            elif frame.type == Type.CANCEL:
                self._cancel(frame.job_id, frame.meta)
        self._start_with_bodies()

    def connection_lost(self, _error: Exception | None) -> None:
        os._exit(0)

    def _claim(self) -> None:
        """Take every ticket that is there: the parent sends no more of them than we may run at a time."""
        while not self._last:
            try:
                ticket = self._tickets.recv(TICKET_LIMIT)
            except BlockingIOError:
                return
            if not ticket:
                self._loop.remove_reader(self._tickets)
                self._last = True
                self._end_when_done()
                return
            job = whole(ticket)
            if job.type == Type.LONG_JOB:
                self._bodiless.append(job)
                self._start_with_bodies()
            else:
                self._start(job)

    def _start_with_bodies(self) -> None:
        """Both come in order; a body between them belongs to a job whose ticket the parent took back."""
        while self._bodiless and self._bodies:
            body = self._bodies.popleft()
            if body.job_id == self._bodiless[0].job_id:
                self._start(self._bodiless.popleft()._replace(body=body.body))

    # running

    def _start(self, frame: Frame) -> None:
        job = self._jobs[frame.job_id] = self._loop.new_job(frame.job_id, self._limits.cpu)
        main = job.start(self._main(job, frame))
        attending = JobTask(self._attend(job, main), loop=self._loop)
        attending.owner = self
        self._attending.add(attending)
        attending.add_done_callback(self._attending.discard)
        if not self._beating:
            self._beat()

    async def _attend(self, job: IoJob, main: asyncio.Task[_Ended]) -> None:
        """Until the job and all that it left in the loop are over. In our own context, where no job can cancel us."""
        try:
            await wait([main])
            while leftovers := job.cancel_all():
                await wait(leftovers)
            job.threads.drop()
            del self._jobs[job.id]
            self._look_after(job)
            self._report(job, main)
        except BaseException as error:  # noqa: BLE001 - somebody closed the stream, say: the parent finds out who
            traceback.print_exc()
            if isinstance(error, MemoryError):
                self._mark.enter(job.id)
            os._exit(1)
        self._end_when_done()

    def _look_after(self, job: IoJob) -> None:
        """Of the process nobody can tell which of those that run there has damaged it."""
        if damage := self._guard.look():
            self._transport.write(head(Type.LEAVING, 0, damage.encode()))
        elif job.threads.busy:
            self._transport.write(head(Type.LEAVING, job.id, b"threads"))

    def _report(self, job: IoJob, main: asyncio.Task[_Ended]) -> None:
        if not main.cancelled() and isinstance(main.exception(), MemoryError):
            self._transport.write(head(Type.OUT_OF_MEMORY, job.id))
            return
        failed, result = (_failed(job, asyncio.CancelledError()), b"") if main.cancelled() else main.result()
        assert job.scope is not None, "its task began"
        job.scope.close()
        self._transport.write(job.scope.preface(succeeded=failed is None))
        for part in report(job.id, failed, result, usage(job.started_at, job.cpu_seconds)):
            self._transport.write(part)

    async def _main(self, job: IoJob, frame: Frame) -> _Ended:
        """Raises MemoryError, and nothing else."""
        order = json.loads(frame.meta)
        job.timeout = order["timeout"]
        expires = time.monotonic() + job.timeout
        job.scope = self._backstage.enter(job.id, order, expires, lambda: job.ended_by == CANCELLED)
        try:
            result = await self._call(order, frame.body, job.scope.context)
            if job.ended_by is not None:
                raise JobTimeout("the handler went on after its timeout")  # noqa: TRY301
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are outcomes like others
            return _failed(job, error), b""
        return None, result

    async def _call(self, order: dict[str, Any], body: bytes, context: JobContext) -> bytes:
        kind = self._kinds.get(order["kind"])
        if kind is None:
            raise Refused("unknown_kind", f"no handler is declared for kind {order['kind']!r}")
        payload = checked(kind, body, order["payload"], self._limits.depth)
        return encoded(await cast("Any", kind.call(payload, context)), self._limits.result)

    def _cancel(self, job_id: int, why: bytes) -> None:
        """Its ticket may still lie there."""
        self._claim()
        if job_id in self._jobs:
            self._jobs[job_id].end(why)

    # living

    def _beat(self) -> None:
        """Each beat is a step that the parent sees, also by a Python whose steps can't be followed one by one."""
        self._mark.enter_unknown()
        self._loop.count_strangers()
        self._beating = bool(self._jobs)
        if self._beating:
            self._loop.call_later(BEAT, self._beat)

    def _end_when_done(self) -> None:
        if self._last and not self._jobs and not self._bodiless:
            self._transport.close()


def _failed(job: IoJob, error: BaseException) -> dict[str, Any]:
    """A cancelled task is how the end of a job's time shows here; it is told as in a cpu child."""
    if job.ended_by in (None, CANCELLED):
        return failure.describe(error, None)
    if isinstance(error, asyncio.CancelledError):
        error = JobTimeout().with_traceback(error.__traceback__)
    return failure.describe(error, overrun(job.timeout) if job.ended_by == TIMED_OUT else spent(job.cpu_limit))
