"""The loop of a child: take a ticket, read its job, run it, report. It knows nothing but its two sockets."""

import os
import signal
import socket
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import NoReturn

from consumer.worker import process
from consumer.worker.execute import Executor, Limits
from consumer.worker.guard import HALF_DONE, Guard
from consumer.worker.loading import Kind
from consumer.worker.mark import Mark
from consumer.worker.scope import Backstage
from consumer.worker.timer import RunTimer
from consumer.worker.wire import HEADER, SMALL, TICKET_LIMIT, Frame, Parser, Type, head, whole

_CHUNK = 1024 * 1024
_ANY_LENGTH = 2**32
_RESERVE = 4 * 1024 * 1024
"""Bytes that are given up to be able to report that there is no memory."""


def live(
    stream: socket.socket, tickets: socket.socket, mark: int, kinds: Mapping[str, Kind], limits: Limits, place: str
) -> None:
    """Be a child of the pool, in a process that was just forked, until the parent lets go of us."""
    os.setpgid(0, 0)
    process.mind_no_signals()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    timer = RunTimer(limits.cpu)
    timer.install()
    process.let_copies_end()
    executor = Executor(kinds, limits, timer, Backstage.in_child(tickets, limits.log, place, one_by_one=True))
    seen = Mark(mark)
    os.close(mark)
    child = Child(stream, tickets, executor, seen, Guard((stream.fileno(), tickets.fileno()), keep=limits.keep))
    try:
        child.serve()
    except (EOFError, ConnectionError):
        pass
    except OSError as error:  # a job closed a socket, or put something else in its place
        child.leave(f"what can't be put back: {error.strerror}")
    os._exit(0)


class Child:
    def __init__(
        self,
        stream: socket.socket,
        tickets: socket.socket,
        executor: Executor,
        mark: Mark,
        guard: Guard,
    ) -> None:
        self._stream = stream
        self._tickets = tickets
        self._executor = executor
        self._mark = mark
        self._guard = guard
        self._parser = Parser(_ANY_LENGTH)
        self._bodies: deque[Frame] = deque()
        self._pid = os.getpid()
        self._last_words = bytearray(HEADER.size)
        self._reserve = [bytes(_RESERVE)]

    def serve(self) -> None:
        """Run jobs until there are no more tickets to come, or until one did lasting damage.

        A ticket is claimed only when its job can begin. Whoever receives it, we or the parent, has it for itself,
        so the parent knows what runs here without being told.
        """
        self._stream.sendall(head(Type.READY, 0))
        while ticket := self._tickets.recv(TICKET_LIMIT):
            job = whole(ticket)
            if job.type != Type.CANCEL:  # else of a job that ended before it heard of it
                self._send(*self._run(job))
                if damage := self._guard.look() or (HALF_DONE if self._executor.interrupted else ""):
                    self.leave(damage)
                    return

    def _run(self, job: Frame) -> tuple[bytes, bytes]:
        HEADER.pack_into(self._last_words, 0, 0, 0, Type.OUT_OF_MEMORY, job.job_id)
        try:
            return self._executed(job)
        except MemoryError:
            self._end_out_of_memory()

    def _executed(self, job: Frame) -> tuple[bytes, bytes]:
        """In a context (of contextvars, and so of decimals) of its own, which the next job doesn't see."""
        try:
            if job.type == Type.LONG_JOB:
                job = job._replace(body=self._body(job.job_id))
            self._mark.enter(job.job_id)
            return copy_context().run(self._executor.execute, job, partial(self._is_cancelled, job.job_id))
        finally:
            if os.getpid() != self._pid:  # the handler forked, and this is the copy of us: it has nothing to say
                os._exit(0)

    def leave(self, damage: str) -> None:
        """Tell the parent why this process ends, so that it is not taken for a crash."""
        with suppress(OSError):
            self._stream.sendall(head(Type.LEAVING, 0, damage.encode()))

    def _is_cancelled(self, job_id: int) -> bool:
        """Whether the parent has put its wish before all tickets to come. It is left there, so the answer stays."""
        try:
            first = self._tickets.recv(HEADER.size, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except OSError:
            return False
        return first == head(Type.CANCEL, job_id)

    def _body(self, job_id: int) -> bytes:
        """Bodies before it belong to jobs whose tickets the parent took back."""
        while True:
            while self._bodies:
                frame = self._bodies.popleft()
                if frame.job_id == job_id:
                    return frame.body
            data = self._stream.recv(min(self._parser.missing, _CHUNK))
            if not data:
                raise EOFError
            self._bodies.extend(self._parser.feed(data))

    def _send(self, start: bytes, body: bytes) -> None:
        """In one system call where it is small, without a copy where it is large."""
        if len(body) <= SMALL:
            self._stream.sendall(start + body)
        else:
            self._stream.sendall(start)
            self._stream.sendall(body)

    def _end_out_of_memory(self) -> NoReturn:
        """Say so in words that were put together before, and end: what needs memory now would fail again."""
        self._reserve.clear()
        os.write(self._stream.fileno(), self._last_words)
        os._exit(1)
