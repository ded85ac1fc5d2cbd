"""What the jobs of a child say, on its way to the parent.

It goes as packets on the socket that tickets come from: a packet is written whole or not at all, whichever thread
writes it, and whatever exception a signal raises meanwhile.
"""

import logging
import select
import socket
from contextlib import suppress
from contextvars import ContextVar
from json import dumps

from consumer.worker.line_cutter import LINE_COST, LINE_LIMIT, LineCutter
from consumer.worker.wire import Type, head

_PATIENCE_MS = 1000
_NAME_LIMIT = 200
"""Of a logger, in characters: a packet holds it and a line."""
_current: ContextVar["Speaker"] = ContextVar("consumer_speaker")


class Speaker:
    """Says what one run has to say, and after `limit` bytes nothing more; the parent, which counts too, tells people.

    `spoke`: the parent has something to read before it takes the report.
    """

    def __init__(self, sock: socket.socket, job_id: int, limit: int) -> None:
        self.spoke = False
        self._socket = sock
        self._job_id = job_id
        self._left = limit
        self._cutters: dict[str, LineCutter] = {}

    @property
    def silenced(self) -> bool:
        return self._left < 0

    def log(self, logger: str, level: int, text: str) -> None:
        self._say(logger, level, text[:LINE_LIMIT])

    def write(self, stream: str, data: bytes) -> None:
        """What was printed. Not much more of it is looked at than may be said."""
        if not self.silenced:
            for line in self._cutters.setdefault(stream, LineCutter()).feed(data[: self._left + 1]):
                self._say(stream, logging.INFO, line)

    def finish(self) -> None:
        """Say the lines that were begun."""
        for stream, cutter in self._cutters.items():
            for line in cutter.finish():
                self._say(stream, logging.INFO, line)

    def progressed(self, fraction: float, note: str) -> None:
        self._send(head(Type.PROGRESS, self._job_id, dumps([fraction, note]).encode()))

    def _say(self, stream: str, level: int, text: str) -> None:
        if not self.silenced:
            body = text.encode("utf-8", "backslashreplace")
            self._left -= len(body) + LINE_COST
            meta = dumps([stream[:_NAME_LIMIT], level]).encode()
            self._send(head(Type.LOG, self._job_id, meta, len(body)) + body)

    def _send(self, packet: bytes) -> None:
        self.spoke = True
        with suppress(OSError):  # a job closed it, or there is no parent: others find that out
            try:
                self._socket.send(packet)
            except BlockingIOError:  # an io child's socket doesn't wait
                ready = select.poll()
                ready.register(self._socket, select.POLLOUT)
                ready.poll(_PATIENCE_MS)
                self._socket.send(packet)


class Voice:
    """Of a child. Before its first run, and in threads that outlive theirs, somebody speaks too."""

    def __init__(self, sock: socket.socket, limit: int) -> None:
        self._socket = sock
        self._limit = limit
        self._latest = Speaker(sock, 0, limit)

    def begin(self, job_id: int) -> Speaker:
        """Of the run that begins in this context. A thread that has no context of its own speaks for the latest run."""
        self._latest = Speaker(self._socket, job_id, self._limit)
        self.give_to(self._latest)
        return self._latest

    def give_to(self, speaker: Speaker) -> None:
        """In this context."""
        _current.set(speaker)

    @property
    def speaker(self) -> Speaker:
        return _current.get(self._latest)
