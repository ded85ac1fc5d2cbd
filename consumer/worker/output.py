"""The pipe that a process has as standard output and error: what comes of it is what was written beside Python."""

import asyncio
import codecs
import os
from collections.abc import Callable

from consumer.worker.line_cutter import LineCutter

_SIP = 1024
"""How much is looked at in one turn of the loop: each line of it becomes a line of the log."""
_GULP = 64 * 1024
"""As much as a pipe holds: how much is thrown away at a time, or read at the end of a run."""
_BREATH = 0.002
"""Seconds between two gulps: a flood shall cost its writer time, and not us."""


def pipe() -> tuple[int, int]:
    """Reading end, which never blocks, and writing end, which does."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reading, False)
    return reading, writing


class Output:
    """`wanted` tells whether more may be said by whoever writes now, `say` takes a line of it."""

    def __init__(self, descriptor: int, wanted: Callable[[], bool], say: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._wanted = wanted
        self._say = say
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._cutter = LineCutter()
        self._loop = asyncio.get_running_loop()
        self._coming: asyncio.Handle | None = None
        self._over = False
        self._loop.add_reader(descriptor, self._ready)

    def drain(self) -> None:
        """All that is there now belongs to whoever wrote until now; what is there a moment later may be another's."""
        self._take(_GULP)

    def finish(self) -> None:
        """So does the line that was begun."""
        for line in self._cutter.finish():
            self._say(line)

    def close(self) -> None:
        self.drain()
        self.finish()
        if self._coming is not None:
            self._coming.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _ready(self) -> None:
        """Let the reports that came in this turn be heard first: they are of jobs before the one that writes."""
        self._loop.remove_reader(self._descriptor)
        self._coming = self._loop.call_soon(self._sip)

    def _sip(self) -> None:
        if self._wanted():
            self._take(_SIP)
            self._go_on()
        else:
            self._read(_GULP)
            self._coming = self._loop.call_later(_BREATH, self._go_on)

    def _go_on(self) -> None:
        self._coming = None
        if not self._over:
            self._loop.add_reader(self._descriptor, self._ready)

    def _take(self, size: int) -> None:
        data = self._read(size)
        if self._wanted():
            for line in self._cutter.feed(self._decoder.decode(data)):
                self._say(line)

    def _read(self, size: int) -> bytes:
        try:
            data = os.read(self._descriptor, size)
        except BlockingIOError:
            return b""
        self._over = not data  # nobody has the other end any more
        return data
