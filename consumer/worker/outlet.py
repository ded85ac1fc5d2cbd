"""Writes to a child without ever blocking, and without minding that it is dead."""

import asyncio
import socket
from collections import deque


class Outlet:
    """Not the transport that reads: its first failed write would throw away what the child said before it died."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._rest: deque[memoryview] = deque()

    def write(self, data: bytes) -> None:
        if self._rest:
            self._rest.append(memoryview(data))
            return
        sent = self._send(data)
        if sent < len(data):
            self._rest.append(memoryview(data)[sent:])
            self._loop.add_writer(self._sock, self._flush)

    def close(self) -> None:
        if self._rest:
            self._loop.remove_writer(self._sock)
        self._sock.close()

    def _flush(self) -> None:
        while self._rest:
            piece = self._rest.popleft()
            sent = self._send(piece)
            if sent < len(piece):
                self._rest.appendleft(piece[sent:])
                return
        self._loop.remove_writer(self._sock)

    def _send(self, data: bytes | memoryview) -> int:
        try:
            return self._sock.send(data)
        except BlockingIOError:
            return 0
        except OSError:  # the child is dead: whoever reads from it will know
            return len(data)
