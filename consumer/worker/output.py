"""The pipe that a process has as standard output and error: what comes of it is what was written beside Python."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable

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


def waiting(descriptor: int) -> int:
    """How many bytes are in a pipe. It has an answer at both ends."""
    return int(struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0])


class Output:
    """`wanted` tells whether more may be said by whoever writes now; `hear` is given what was read, also if not."""

    def __init__(self, descriptor: int, wanted: Callable[[], bool], hear: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._wanted = wanted
        self._hear = hear
        self._seen = 0
        self._loop = asyncio.get_running_loop()
        self._coming: asyncio.Handle | None = None
        self._go_on()

    def drain(self) -> None:
        """All that is there now."""
        self._seen = 0
        self._hear(self._read(_GULP))

    def close(self) -> None:
        self.drain()
        if self._coming is not None:
            self._coming.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _ready(self) -> None:
        """A whole turn of the loop is to come before we read what we see now.

        Then all reports are heard that were sent before it was written, and so we know whose it is.
        """
        self._loop.remove_reader(self._descriptor)
        self._seen = waiting(self._descriptor)
        self._coming = self._loop.call_soon(self._wait_a_turn)

    def _wait_a_turn(self) -> None:
        self._coming = self._loop.call_soon(self._look)

    def _look(self) -> None:
        wanted = self._wanted()
        data = self._read(min(self._seen, _SIP if wanted else _GULP))
        self._hear(data)
        if data and wanted:
            self._go_on()
        else:
            self._coming = self._loop.call_later(_BREATH, self._go_on)

    def _go_on(self) -> None:
        self._coming = None
        self._loop.add_reader(self._descriptor, self._ready)

    def _read(self, size: int) -> bytes:
        try:
            return os.read(self._descriptor, size)
        except BlockingIOError:
            return b""
