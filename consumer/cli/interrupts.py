"""How a command ends that somebody interrupts: it closes what it opened, says so, and ends as programs do then."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from consumer.cli.output import fail

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. The first signal cancels it; the next one does what a signal did before."""
    before = [signal.getsignal(number) for number in SIGNALS]

    def as_before() -> None:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)

    async def interruptible() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None, "it is run as one"
        came: list[int] = []

        def interrupt(number: int) -> None:
            came.append(number)
            for each in SIGNALS:
                loop.remove_signal_handler(each)
            as_before()
            task.cancel()

        for number in SIGNALS:
            loop.add_signal_handler(number, interrupt, number)
        try:
            return await work
        except asyncio.CancelledError:
            if came:
                fail("interrupted", 128 + came[0])
            raise

    try:
        return asyncio.run(interruptible())
    finally:
        as_before()
