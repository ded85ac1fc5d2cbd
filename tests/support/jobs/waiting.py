"""Async jobs that behave, and wait for each other or for a test."""

import asyncio
import contextvars
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from consumer import JobContext, job

_about: contextvars.ContextVar[str] = contextvars.ContextVar("about", default="nothing")
_waiting: list[asyncio.Future[None]] = []


class Nap(BaseModel):
    seconds: float


@job("nap", timeout=60)
async def nap(payload: Nap) -> int:
    await asyncio.sleep(payload.seconds)
    return os.getpid()


@job("meet", timeout=60)
async def meet(payload: int) -> int:
    """Over when that many of us are here, all in one process."""
    _waiting.append(asyncio.get_running_loop().create_future())
    if len(_waiting) == payload:
        for each in _waiting:
            each.set_result(None)
    await _waiting[-1]
    return os.getpid()


@job("async_echo", timeout=60)
async def async_echo(payload: Any) -> Any:
    return payload


@job("async_whoami", timeout=60)
async def async_whoami(payload: Any, context: JobContext) -> dict[str, object]:
    return {"kind": context.kind, "key": context.key, "attempt": context.attempt, "left": context.time_left()}


@job("own_context", timeout=60)
async def own_context(payload: str) -> list[str]:
    """What others set in their context is not seen here, and what threads and tasks of ours see is ours."""
    before = _about.get()
    _about.set(payload)
    await asyncio.sleep(0.02)
    in_task = await asyncio.create_task(_read())
    return [before, _about.get(), in_task, await asyncio.to_thread(_about.get)]


async def _read() -> str:
    return _about.get()


@job("runs_a_program", timeout=60)
async def runs_a_program(payload: str) -> str:
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", payload, stdout=asyncio.subprocess.PIPE)
    out, _ = await program.communicate()
    return out.decode()


@job("spins", timeout=60)
async def spins(payload: float) -> None:
    """Use that much CPU, in small steps."""
    for _ in range(round(payload / 0.01)):
        end = asyncio.get_running_loop().time() + 0.01
        while asyncio.get_running_loop().time() < end:
            pass
        await asyncio.sleep(0)


@job("cleans_up", timeout=10)
async def cleans_up(payload: str) -> None:
    """Mind the end of its time."""
    try:
        await asyncio.sleep(1000)
    finally:
        _write(payload, "cleaned")


@job("leaves_tasks", timeout=10)
async def leaves_tasks(payload: str) -> str:
    """Forget tasks that are still running: one of ours, and one of a task of ours."""

    async def go_on(name: str) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            _write(payload, f"{name} cancelled\n")
            raise

    async def begin() -> None:
        asyncio.create_task(go_on("inner"))  # noqa: RUF006 - the point

    asyncio.create_task(go_on("outer"))  # noqa: RUF006 - the point
    await asyncio.create_task(begin())
    await asyncio.sleep(0)
    return "done"


def _write(path: str, text: str) -> None:
    with Path(path).open("a") as file:
        file.write(text)


@job("async_prints", timeout=60)
async def async_prints(payload: str, context: JobContext) -> None:
    await asyncio.sleep(0)
    sys.stdout.write(f"{payload} printed\n")
    context.logger.info("%s logged", payload)


@job("speaks", timeout=10)
async def speaks(payload: Any, context: JobContext) -> str:
    """Use all that a context offers, in turns with others."""
    for _ in range(3):
        print(f"{context.key} prints")  # noqa: T201 - the point
        context.logger.info("logs")
        await asyncio.sleep(0.01)
    context.progress(0.5, f"half of {context.key}")
    context.send("async_echo", {"from": context.key})
    (context.tempdir / "file").write_text("x")
    return str(context.tempdir)


@job("stops_when_cancelled", timeout=10)
async def stops_when_cancelled(payload: Any, context: JobContext) -> None:
    try:
        await asyncio.sleep(1000)
    finally:
        context.logger.info("cancelled: %s", context.cancelled)


@job("cancels_itself", timeout=10)
async def cancels_itself(payload: Any) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


@job("forks_in_loop", timeout=10)
async def forks_in_loop(payload: Any) -> str:
    """The copy returns too, and would go on as a second child on the same sockets."""
    os.fork()
    return "done"


@job("process_of_its_own", timeout=30)
async def process_of_its_own(payload: Any) -> int:
    """A forked process that has a loop of its own."""
    process = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(asyncio.sleep(0.01)))
    process.start()
    await asyncio.to_thread(process.join)
    return process.exitcode or 0
