"""One child as the parent sees it: what was sent to it, what it says, and how it ended."""

import asyncio
import json
import signal
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol, cast

from consumer.core.outcome import Failed, Outcome, Succeeded, TimedOut, Usage
from consumer.core.ports import Clock
from consumer.worker import run as runs
from consumer.worker.catalogue import Sort
from consumer.worker.config import PoolConfig
from consumer.worker.ear import Audience, Ear
from consumer.worker.follow_ups import FRAME_LIMIT, decoded
from consumer.worker.nursery import Birth, Death, Nursery
from consumer.worker.outlet import Outlet
from consumer.worker.process import kill_group
from consumer.worker.procfs import is_dead, resident
from consumer.worker.run import Run
from consumer.worker.service import Service
from consumer.worker.suspects import ZYGOTE_DIED
from consumer.worker.tickets import Tickets
from consumer.worker.wear import Wear
from consumer.worker.wire import USAGE, Frame, Parser, Type, WireError

if TYPE_CHECKING:
    from consumer.core.outbox import FollowUp

_LAST_WORDS_WAIT = 0.2
"""Seconds to wait for the end of a dead child's stream, which something that it started may hold open."""


class Listener(Audience, Protocol):
    def child_ready(self, member: "Member") -> None: ...
    def child_retiring(self, member: "Member") -> None: ...
    def child_leaving(self, member: "Member", damage: str, kind: str) -> None: ...
    def child_killed(self, begun: Collection[Run]) -> frozenset[int]:
        """Perhaps by somebody outside, while these ran there. Return to whom it is charged."""
        ...

    def run_weighed(self, run: Run, grown: int) -> None: ...
    def runs_back(self, runs: list[Run]) -> None: ...
    def run_over(self, member: "Member", run: Run, outcome: Outcome) -> None: ...
    def child_gone(self, member: "Member", reason: str, unstarted: list[Run]) -> None: ...


class Member(asyncio.Protocol, ABC):
    """What both sorts of children have in common. `queue` holds the runs that were sent and are not over, in order."""

    sort: Sort

    def __init__(self, birth: Birth, nursery: Nursery, listener: Listener, clock: Clock, config: PoolConfig) -> None:
        self.pid = birth.pid
        self.queue: deque[Run] = deque()
        self.ready = False
        self.up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.leaving = False
        self.stolen_from = False
        self.retiring = False
        self.worn = False
        self.fresh = True
        self.killed = False
        self._garbled = False
        self.base_memory = 0
        self._nursery = nursery
        self._listener = listener
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        wear = Wear(config.recycle_jobs, config.recycle_age, config.recycle_memory)
        self._service = Service(wear.of(birth.number - 1), self._loop.time())
        self._mark = birth.mark
        self._parser = Parser(max(config.result_limit, FRAME_LIMIT))
        self._asked: dict[int, tuple[FollowUp, ...]] = {}
        self._outlet = Outlet(birth.stream.dup())
        self._tickets = Tickets(birth.tickets, birth.unclaimed)
        self._ear = Ear(birth.tickets, birth.output, self, listener, config.log_limit)
        self._reason: str | None = None
        self._cpu_seconds = 0.0
        self._stream_over = False
        self._death: Death | None = None
        birth.death.add_done_callback(self._died)

    # what differs

    @property
    @abstractmethod
    def running(self) -> list[Run]: ...

    @abstractmethod
    def interrupt(self, run: Run) -> None:
        """It was cancelled and has begun: tell it. What follows is what follows a timeout."""

    @abstractmethod
    def _watch(self) -> None:
        """Something was sent, taken back or finished: see to it that what runs now ends in time."""

    @abstractmethod
    def _finished(self, job_id: int) -> Run:
        """Take the run off the queue. Raises WireError where it can't have been there."""

    @abstractmethod
    def _charge(self, begun: deque[Run], death: Death) -> list[Run]:
        """Tell what became of those who ended the child, and return all others: they run again, uncharged."""

    # sending

    def send(self, run: Run) -> None:
        ticket, body = runs.ticket(run)
        try:
            self._tickets.give(ticket)
        except BlockingIOError:  # as many lie there as the socket takes, so it gets no more for now
            self.stolen_from = True
            self._listener.runs_back([run])
            return
        except OSError:  # it is dead: the run stays in the queue and is found there, unstarted
            self.leaving = True
        self.fresh = False
        self.queue.append(run)
        if body:
            self._outlet.write(body)
        if self._service.had_its_jobs():
            self.retire()
        self._watch()

    def retire(self) -> None:
        """It gets no more, and goes when what it has is over."""
        if not self.retiring:
            self.retiring = True
            self._listener.child_retiring(self)
            if not self.queue:
                self.dismiss()

    def steal(self) -> list[Run]:
        """Take back what has not started.

        Long bodies of stolen runs stay in the child's stream, so until its present run is over it gets no more.
        """
        stolen = self._tickets.take_back()
        if not stolen:
            return []
        taken = [run for run in self.queue if run.id in stolen]
        for run in taken:
            run.undo()
        self.queue = deque(run for run in self.queue if run.id not in stolen)
        self.stolen_from = bool(self.queue)
        if self.retiring and not self.queue:
            self.dismiss()
        self._watch()
        return taken

    def dismiss(self) -> None:
        """Let it end by itself: there are no more tickets to come."""
        self.leaving = True
        self._reason = self._reason or "recycle"
        self._ear.turn_away()
        self._tickets.end()

    def kill(self, reason: str) -> None:
        """`reason` is a label of child_exits_total; the first one stands."""
        self.leaving = True
        self.killed = True
        self._reason = self._reason or reason
        self._nursery.kill(self.pid, signal.SIGKILL)

    # hearing

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._parser.feed(data):
                self._hear(frame)
        except (WireError, ValueError, KeyError, TypeError, RecursionError, struct.error):
            self._garbled = True  # the job wrote into what isn't its own, so its report can't be trusted either
            self.kill("crash")
            self._transport.abort()

    def _hear(self, frame: Frame) -> None:
        match frame.type:
            case Type.SUCCEEDED:
                follow_ups = self._asked.pop(frame.job_id, ())
                self._over(frame.job_id, Succeeded(frame.body, Usage(*USAGE.unpack(frame.meta)), follow_ups))
            case Type.FAILED:
                self._over(frame.job_id, runs.failure(json.loads(frame.meta)))
            case Type.SPOKE:
                self._ear.listen()
            case Type.WROTE:
                self._ear.read(frame.job_id)
            case Type.FOLLOW_UPS:
                self._asked[frame.job_id] = decoded(frame.body)
            case Type.READY:
                self.ready = True
                self.base_memory = resident(self.pid)
                self._is_up()
                self._listener.child_ready(self)
            case unknown:
                raise WireError(f"a frame of type {unknown}")

    def _is_up(self) -> None:
        if not self.up.done():
            self.up.set_result(None)

    def _over(self, job_id: int, outcome: Succeeded | Failed | TimedOut) -> None:
        self._ear.finish(job_id)
        run = self._finished(job_id)
        self.stolen_from = False
        self._cpu_seconds += outcome.usage.cpu_seconds
        if run.overran and not isinstance(outcome, TimedOut):
            outcome = runs.timed_out(run, outcome.usage)
        self._watch()
        self._listener.run_over(self, run, outcome)
        peak = outcome.usage.peak_memory
        if not self.worn and self._service.is_enough(self._loop.time(), peak, lambda: resident(self.pid)):
            self.worn = True
            self._listener.child_retiring(self)

    # the end

    def connection_lost(self, _error: Exception | None) -> None:
        """It is dead, which we hear in a moment; or it closed its end of the stream, and is of no use any more."""
        self._stream_over = True
        self._outlet.close()
        if self._death is None:
            self.leaving = True
            self._loop.call_later(_LAST_WORDS_WAIT, self._end_the_mute)
        else:
            self._gone(self._death)

    def _end_the_mute(self) -> None:
        if self._death is None and not is_dead(self.pid):
            self.kill("crash")

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
        self._reason = self._reason or "crash"
        self._ear.close()
        stolen = self.steal()
        begun, self.queue = self.queue, deque()
        self._tickets.close()
        self._is_up()
        unstarted = self._charge(begun, death) + stolen
        self._mark.close()
        self._listener.child_gone(self, self._reason, unstarted)

    def _last_outcome(self, run: Run, death: Death) -> Outcome:
        usage = self._usage(run, death)
        if run.overran:
            return runs.timed_out(run, usage)
        if self._reason == "out_of_memory":
            return runs.crashed("", usage, out_of_memory=True)
        if self._garbled:
            return runs.crashed("sent nonsense to the daemon", usage, out_of_memory=False)
        if death.status is None:
            return ZYGOTE_DIED
        return runs.crashed(runs.how_it_ended(death.status), usage, out_of_memory=False)

    def _usage(self, run: Run, death: Death) -> Usage:
        return Usage(
            started_at=run.started_at,
            finished_at=self._clock(),
            cpu_seconds=max(0.0, death.cpu_seconds - self._cpu_seconds),
            peak_memory=death.peak_memory,
        )
