"""Async jobs that take their child with them, hold it up, or don't end."""

import asyncio
import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from consumer import JobContext, job


@job("async_crash", timeout=30)
async def async_crash(payload: str) -> None:
    """End the child after a wait, in one of several ways, while it is surely our step."""
    await asyncio.sleep(0.02)
    match payload:
        case "os_exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "own_hand":
            os.kill(os.getpid(), signal.SIGKILL)
        case "unseen":
            ctypes.CDLL(None).kill(os.getpid(), signal.SIGKILL)


@job("crash_once", timeout=30, backoff=0.2)
async def crash_once(payload: str, context: JobContext) -> None:
    if context.attempt == 1:
        await async_crash(payload)


@job("crash_in_task", timeout=30)
async def crash_in_task(payload: Any) -> None:
    async def crash() -> None:
        await asyncio.sleep(0.02)
        os._exit(4)

    await asyncio.gather(asyncio.sleep(1000), crash())


@job("crash_in_callback", timeout=30)
async def crash_in_callback(payload: Any) -> None:
    asyncio.get_running_loop().call_later(0.02, os._exit, 5)
    await asyncio.sleep(1000)


@job("crash_in_thread", timeout=30)
async def crash_in_thread(payload: Any) -> None:
    await asyncio.to_thread(_exit_soon)


@job("crash_unseen", timeout=30)
async def crash_unseen(payload: Any) -> None:
    """In a thread that nobody knows of."""
    threading.Thread(target=_exit_soon, daemon=True).start()
    await asyncio.sleep(1000)


def _exit_soon() -> None:
    time.sleep(0.05)
    os._exit(6)


@job("raises", timeout=30)
async def raises(payload: str) -> None:
    errors: dict[str, BaseException] = {
        "sys_exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "memory": MemoryError(),
        "cancelled": asyncio.CancelledError(),
        "lookup": LookupError("it always fails"),
    }
    await asyncio.sleep(0)
    raise errors[payload]


@job("exits_in_task", timeout=30)
async def exits_in_task(payload: Any) -> None:
    async def leave() -> None:
        sys.exit(3)

    await asyncio.create_task(leave())


@job("blocks", timeout=30)
async def blocks(payload: float) -> str:
    await asyncio.sleep(0.02)
    time.sleep(payload)  # noqa: ASYNC251 - the point
    return "done"


@job("blocks_in_callback", timeout=30)
async def blocks_in_callback(payload: float) -> None:
    asyncio.get_running_loop().call_later(0.02, time.sleep, payload)
    await asyncio.sleep(1000)


@job("spins_forever", timeout=30)
async def spins_forever(payload: Any) -> None:
    while True:
        pass


@job("swallows_cancel", timeout=30)
async def swallows_cancel(payload: Any) -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1000)


@job("returns_although_cancelled", timeout=30)
async def returns_although_cancelled(payload: Any) -> str:
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(1000)
    return "too late"


@job("leaves_a_thread", timeout=30)
async def leaves_a_thread(payload: float) -> int:
    asyncio.get_running_loop().run_in_executor(None, time.sleep, payload)
    await asyncio.sleep(0.02)
    return os.getpid()


@job("async_len", timeout=30)
async def async_len(payload: str) -> int:
    return len(payload)


@job("huge_async", timeout=30)
async def huge_async(payload: int) -> str:
    return "x" * payload


@job("changes_its_process", timeout=30)
async def changes_its_process(payload: Any) -> None:
    os.chdir("/")
    os.environ["LEFT_BEHIND"] = "1"
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@job("nices_its_process", timeout=30)
async def nices_its_process(payload: Any) -> int:
    os.nice(1)
    return os.getpid()


@job("sees_its_process", timeout=30)
async def sees_its_process(payload: Any) -> list[object]:
    is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    return [str(Path.cwd()), os.environ.get("LEFT_BEHIND"), is_default, os.getpid()]
