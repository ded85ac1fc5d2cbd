"""Whether the zygote still answers: one that is stopped or stuck can't fork, kill or reap, and doesn't die either."""

import asyncio
from collections.abc import Callable

EVERY = 1.0
SILENCE = 5.0
"""Seconds without an answer after which it is given up. It has little to do, so even a busy machine lets it."""


class Pulse:
    def __init__(self, ask: Callable[[], None], lost: Callable[[], None]) -> None:
        self._ask = ask
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._unanswered = 0

    def start(self) -> None:
        self._timer = self._loop.call_later(EVERY, self._beat)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def answered(self) -> None:
        self._unanswered = 0

    def _beat(self) -> None:
        """Count questions and not seconds: where the daemon itself was stopped, they don't count."""
        if self._unanswered * EVERY >= SILENCE:
            self._lost()
            return
        self._unanswered += 1
        self._ask()
        self._timer = self._loop.call_later(EVERY, self._beat)
