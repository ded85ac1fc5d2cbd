"""Waiting for what another process does: the only place in the tests that looks again and again."""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable
from random import SystemRandom

INTERVAL = 0.05
_promised: deque[socket.socket] = deque()
PROMISES = 64
"""As many ports are ours before we listen on them. What is older is in use by now, or done with."""


def until(happened: Callable[[], bool], what: str, within: float = 60) -> None:
    """Return once `happened`, or fail saying that `what` did not."""
    end = time.monotonic() + within
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {within:g} s: {what}")
        time.sleep(INTERVAL)


async def eventually(happened: Callable[[], Awaitable[bool]], what: str, within: float = 20) -> None:
    """Likewise, in a coroutine."""
    try:
        async with asyncio.timeout(within):
            while not await happened():  # noqa: ASYNC110 - another process can't set our events
                await asyncio.sleep(INTERVAL)
    except TimeoutError:
        raise TimeoutError(f"not within {within:g} s: {what}") from None


def free_port() -> int:
    """Return a port that nobody listens on, outside the range that outgoing connections draw from."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        if _is_free(port) and _is_promised_to_us(port):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _is_promised_to_us(port: int) -> bool:
    """Keep other tests off until our server listens: of a name without a file, the kernel gives one socket only."""
    promise = socket.socket(socket.AF_UNIX)
    try:
        promise.bind(f"\0port {port} of a test")
    except OSError:
        promise.close()
        return False
    _promised.append(promise)
    if len(_promised) > PROMISES:
        _promised.popleft().close()
    return True


async def elapse(seconds: float) -> None:
    """For what goes on beside a test for a while, as an outage does. Never wait so for something to happen."""
    await asyncio.sleep(seconds)
