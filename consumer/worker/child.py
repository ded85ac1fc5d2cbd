"""The loop of a child: take a ticket, read its job, run it, report. It knows nothing but its two sockets."""

import os
import signal
import socket
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from consumer.worker import process
from consumer.worker.execute import Executor, Limits
from consumer.worker.loading import Kind
from consumer.worker.timer import RunTimer
from consumer.worker.wire import HEADER, TICKET, Frame, Parser, Type, head

_CHUNK = 256 * 1024
_ANY_LENGTH = 2**32
_RESERVE = 4 * 1024 * 1024
"""Bytes that are given up to be able to report that there is no memory."""


def live(stream: socket.socket, tickets: socket.socket, kinds: Mapping[str, Kind], limits: Limits) -> None:
    """Be a child of the pool, in a process that was just forked, until the parent lets go of us."""
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    timer = RunTimer()
    timer.guard()
    process.limit_memory(limits.memory)
    with suppress(EOFError, ConnectionError):
        Child(stream, tickets, Executor(kinds, limits, timer)).serve()
    os._exit(0)


class Child:
    def __init__(self, stream: socket.socket, tickets: socket.socket, executor: Executor) -> None:
        self._stream = stream
        self._tickets = tickets
        self._executor = executor
        self._parser = Parser(_ANY_LENGTH)
        self._frames: deque[Frame] = deque()
        self._pid = os.getpid()
        self._last_words = bytearray(HEADER.size)
        self._reserve = [bytes(_RESERVE)]

    def serve(self) -> None:
        """Run jobs until there are no more tickets to come.

        A start is announced before its frame is read, so that a job too big to be read is known to be the one
        that ended us. It shares a packet with the result before it: the ticket was claimed in time for that.
        """
        self._stream.sendall(head(Type.READY, 0))
        job_id = self._claim()
        if job_id is not None:
            self._stream.sendall(head(Type.STARTED, job_id))
        while job_id is not None:
            report = self._run(job_id)
            job_id = self._claim(socket.MSG_DONTWAIT)
            self._send(*report, head(Type.STARTED, job_id) if job_id is not None else b"")
            if job_id is None:
                job_id = self._claim()
                if job_id is not None:
                    self._stream.sendall(head(Type.STARTED, job_id))

    def _claim(self, flags: int = 0) -> int | None:
        """The id on the next ticket. Whoever receives a ticket, we or the parent, has it for itself."""
        try:
            ticket = self._tickets.recv(TICKET.size, flags)
        except BlockingIOError:
            return None
        return TICKET.unpack(ticket)[0] if ticket else None

    def _run(self, job_id: int) -> tuple[bytes, bytes]:
        HEADER.pack_into(self._last_words, 0, 0, 0, Type.OUT_OF_MEMORY, job_id)
        try:
            report = self._executor.execute(self._frame(job_id))
        except MemoryError:
            self._end_out_of_memory()
        if os.getpid() != self._pid:  # the handler forked, and this is the copy of us
            os._exit(0)
        return report

    def _frame(self, job_id: int) -> Frame:
        """The frame of a job. Those before it lost their tickets to the parent and are not ours to run."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                if frame.job_id == job_id:
                    return frame
            data = self._stream.recv(_CHUNK)
            if not data:
                raise EOFError
            self._frames.extend(self._parser.feed(data))

    def _send(self, *parts: bytes) -> None:
        """In one system call as a rule, and without copying a large result."""
        views = [memoryview(part) for part in parts if part]
        while views:
            sent = self._stream.sendmsg(views)
            while views and sent >= len(views[0]):
                sent -= len(views.pop(0))
            if sent:
                views[0] = views[0][sent:]

    def _end_out_of_memory(self) -> None:
        """Say so in words that were put together before, and end: what needs memory now would fail again."""
        self._reserve.clear()
        os.write(self._stream.fileno(), self._last_words)
        os._exit(1)
