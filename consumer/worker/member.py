"""One child as the parent sees it: what was sent to it, what runs there, when that must end, and how it ended."""

import asyncio
import json
import signal
import socket
import struct
from collections import deque
from contextlib import suppress
from typing import Protocol, cast

from consumer.core.outcome import Failed, Interrupted, Outcome, Succeeded, TimedOut, Usage
from consumer.core.ports import Clock
from consumer.worker import run as runs
from consumer.worker.config import PoolConfig
from consumer.worker.nursery import Birth, Death, Nursery
from consumer.worker.outlet import Outlet
from consumer.worker.overtime import Overtime
from consumer.worker.process import kill_group
from consumer.worker.run import Run
from consumer.worker.wire import HEADER, USAGE, Frame, Parser, Type, WireError

_LAST_WORDS_WAIT = 0.2
"""Seconds to wait for the end of a dead child's stream, which something that it started may hold open."""


class Listener(Protocol):
    def child_ready(self, member: "Member") -> None: ...
    def child_retiring(self, member: "Member") -> None: ...
    def run_over(self, member: "Member", run: Run, outcome: Outcome) -> None: ...
    def child_gone(self, member: "Member", reason: str, unstarted: list[Run]) -> None: ...


class Member(asyncio.Protocol):
    """`queue` holds the runs that were sent and are not over, in order.

    The first of them runs, for a child claims a ticket only when it can begin; unless its ticket can still be
    taken back, which is how to be sure.
    """

    def __init__(
        self,
        birth: Birth,
        nursery: Nursery,
        listener: Listener,
        clock: Clock,
        config: PoolConfig,
    ) -> None:
        self.pid = birth.pid
        self.queue: deque[Run] = deque()
        self.ready = False
        self.up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.leaving = False
        self.stolen_from = False
        self.retiring = False
        self._sent = 0
        self._nursery = nursery
        self._listener = listener
        self._clock = clock
        self._recycle_jobs = config.recycle_jobs
        self._loop = asyncio.get_running_loop()
        self._parser = Parser(config.result_limit)
        self._outlet = Outlet(birth.stream.dup())
        self._tickets, self._unclaimed = birth.tickets, birth.unclaimed
        self._overtime = Overtime(self, config.kill_grace, self._overrun)
        self._reason: str | None = None
        self._cpu_seconds = 0.0
        self._stream_over = False
        self._death: Death | None = None
        birth.death.add_done_callback(self._died)

    @property
    def running(self) -> Run | None:
        return self.queue[0] if self.queue else None

    # sending

    def send(self, run: Run) -> None:
        self.queue.append(run)
        ticket, body = runs.ticket(run)
        if body:
            self._outlet.write(body)
        try:
            self._tickets.send(ticket)
        except OSError:  # it is dead: the run stays in the queue and is found there, unstarted
            self.leaving = True
        self._sent += 1
        if self._sent == self._recycle_jobs:
            self.retiring = True
            self._listener.child_retiring(self)
        self._watch_first()

    def steal(self) -> list[Run]:
        """Take back what has not started. Whoever receives a ticket has it: what we get here, the child can't.

        Long bodies of stolen runs stay in the child's stream, so until its present run is over it gets no more.
        """
        stolen = set()
        with suppress(BlockingIOError):
            while packet := self._unclaimed.recv(HEADER.size, socket.MSG_DONTWAIT):
                stolen.add(HEADER.unpack(packet)[3])
        if not stolen:
            return []
        taken = [run for run in self.queue if run.id in stolen]
        for run in taken:
            run.undo()
        self.queue = deque(run for run in self.queue if run.id not in stolen)
        self.stolen_from = bool(self.queue)
        if self.retiring and not self.queue:
            self.dismiss()
        self._watch_first()
        return taken

    def dismiss(self) -> None:
        """Let it end by itself: there are no more tickets to come."""
        self.leaving = True
        self._reason = "recycle"
        self._tickets.close()

    def kill(self, reason: str) -> None:
        """`reason` is a label of child_exits_total; the first one stands."""
        self.leaving = True
        self._reason = self._reason or reason
        self._nursery.kill(self.pid, signal.SIGKILL)

    # hearing

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._parser.feed(data):
                self._hear(frame)
        except (WireError, ValueError, KeyError, TypeError, struct.error):  # the job wrote into what isn't its own
            self.kill("crash")

    def _hear(self, frame: Frame) -> None:
        match frame.type:
            case Type.SUCCEEDED:
                self._over(frame.job_id, Succeeded(frame.body, Usage(*USAGE.unpack(frame.meta))))
            case Type.FAILED:
                self._over(frame.job_id, runs.failure(json.loads(frame.meta)))
            case Type.READY:
                self.ready = True
                self._is_up()
                self._listener.child_ready(self)
            case Type.OUT_OF_MEMORY:
                self.kill("out_of_memory")
            case unknown:
                raise WireError(f"a frame of type {unknown}")

    def _is_up(self) -> None:
        if not self.up.done():
            self.up.set_result(None)

    def _watch_first(self) -> None:
        """The clock of its execution timeout starts now."""
        if self.queue and not self.queue[0].started:
            self.queue[0].begin(self._loop.time(), self._clock())
            self._overtime.watch(self.queue[0])

    def _over(self, job_id: int, outcome: Succeeded | Failed | TimedOut) -> None:
        if not self.queue or self.queue[0].id != job_id:
            raise WireError(f"job {job_id} does not run there")
        run = self.queue.popleft()
        self.stolen_from = False
        self._cpu_seconds += outcome.usage.cpu_seconds
        if run.overran and not isinstance(outcome, TimedOut):
            outcome = runs.timed_out(run, outcome.usage)
        self._watch_first()
        self._listener.run_over(self, run, outcome)

    def _overrun(self, run: Run, number: int) -> None:
        """The handler did not mind the exception. SIGTERM may leave the child alive: it is ours until SIGKILL."""
        run.overran = True
        if number == signal.SIGTERM:
            self._nursery.kill(self.pid, number)
        else:
            self.kill("timeout")

    # the end

    def connection_lost(self, _error: Exception | None) -> None:
        self._stream_over = True
        self._outlet.close()
        if self._death is None:
            self.kill("crash")
        else:
            self._gone(self._death)

    def _died(self, death: asyncio.Future[Death]) -> None:
        self.leaving = True
        self._death = death.result()
        if self._death.status is None and self._reason != "drain":  # there is no zygote to kill its group
            kill_group(self.pid)
        if self._stream_over:
            self._gone(self._death)
        else:
            self._loop.call_later(_LAST_WORDS_WAIT, self._hang_up)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def _hang_up(self) -> None:
        if not self._stream_over:
            self._transport.abort()

    def _gone(self, death: Death) -> None:
        unstarted = self.steal()
        running = self.queue.popleft() if self.queue else None
        unstarted = [*self.queue, *unstarted]
        self.queue.clear()
        self._overtime.stop()
        self._tickets.close()
        self._unclaimed.close()
        self._is_up()
        if running is not None:
            if running.overran:
                self._reason = "timeout"
            self._listener.run_over(self, running, self._last_outcome(running, death))
        self._listener.child_gone(self, self._reason or "crash", unstarted)

    def _last_outcome(self, run: Run, death: Death) -> Outcome:
        usage = Usage(
            started_at=run.started_at,
            finished_at=self._clock(),
            cpu_seconds=max(0.0, death.cpu_seconds - self._cpu_seconds),
            peak_memory=death.peak_memory,
        )
        if run.overran:
            return runs.timed_out(run, usage)
        if self._reason == "out_of_memory":
            return runs.crashed("", usage, out_of_memory=True)
        if death.status is None:
            return Interrupted("zygote died")
        return runs.crashed(runs.how_it_ended(death.status), usage, out_of_memory=False)
