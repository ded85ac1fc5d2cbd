"""A job's latest word about how far it is, often enough for people and seldom enough for the daemon."""

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

INTERVAL = 0.5


class Progress:
    """What comes too soon is held, and told when its time has come, unless something newer came meanwhile.

    That takes a thread, since the job may well be busy for the next hour.
    """

    def __init__(self, tell: Callable[[float, str], None]) -> None:
        self._tell = tell
        self._held: tuple[float, str] | None = None
        self._told_at = 0.0
        self._timer: threading.Timer | None = None
        self._telling = threading.Lock()

    def is_at(self, fraction: float, note: str) -> None:
        self._held = (fraction, note)
        wait = self._told_at + INTERVAL - monotonic()
        if wait <= 0:
            self._release()
        elif self._timer is None:
            self._timer = threading.Timer(wait, self._ring)
            self._timer.daemon = True
            with suppress(RuntimeError):  # no further thread can be had: then it is told with the next one
                self._timer.start()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._release()

    def _ring(self) -> None:
        self._timer = None
        self._release()

    def _release(self) -> None:
        with self._telling:
            held, self._held = self._held, None
            if held is not None:
                self._told_at = monotonic()
                self._tell(*held)
