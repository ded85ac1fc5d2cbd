"""Async jobs that misuse what all jobs of their child share: the loop, the process, and asyncio itself."""

import asyncio
import contextvars
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import uvloop

from consumer import JobContext, job

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
_MISUSES: dict[str, Callable[[JobContext], Coroutine[Any, Any, Any]]] = {}
_lock: list[asyncio.Lock] = []


def misuse(function: Callable[[JobContext], Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    _MISUSES[function.__name__] = function
    return function


@job("misuse", timeout=60)
async def run_misuse(payload: str, context: JobContext) -> Any:
    return await _MISUSES[payload](context)


@misuse
async def stops_the_loop(_: JobContext) -> str:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    return "done"


@misuse
async def closes_the_loop(_: JobContext) -> None:
    asyncio.get_running_loop().close()


@misuse
async def runs_a_loop_inside(_: JobContext) -> None:
    asyncio.run(asyncio.sleep(0))


@misuse
async def runs_a_loop_in_a_thread(_: JobContext) -> str:
    await asyncio.to_thread(asyncio.run, asyncio.sleep(0.01))
    return "done"


@misuse
async def shuts_the_loop_down(_: JobContext) -> str:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor() as mine:
        loop.set_default_executor(mine)
        await asyncio.to_thread(time.sleep, 0)
    await loop.shutdown_default_executor()
    await loop.shutdown_asyncgens()
    return "done"


@misuse
async def sets_handlers_and_factories(_: JobContext) -> str:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(refuse)
    loop.set_task_factory(refuse)
    loop.set_debug(True)
    loop.call_soon(refuse)
    await asyncio.sleep(0.01)
    return "done"


@misuse
async def leaves_callbacks_that_raise(_: JobContext) -> str:
    def leave() -> None:
        raise SystemExit(4)

    def interrupt() -> None:
        raise KeyboardInterrupt

    for function in (leave, interrupt):
        asyncio.get_running_loop().call_soon(function)
        asyncio.get_running_loop().call_later(0.01, function)
    return "done"


@misuse
async def patches_asyncio(_: JobContext) -> str:
    patches = [mock.patch(f"asyncio.{name}") for name in ("wait", "sleep", "Task", "create_task", "get_running_loop")]
    sleep = asyncio.sleep
    for each in patches:
        each.start()
    await sleep(0.05)
    for each in patches:
        each.stop()
    return "done"


@misuse
async def raises_generator_exit(_: JobContext) -> None:
    raise GeneratorExit


@misuse
async def raises_stop_iteration(_: JobContext) -> None:
    raise StopIteration


@misuse
async def raises_a_group(_: JobContext) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(raises_stop_iteration(_))
        group.create_task(closes_the_loop(_))


@misuse
async def recurses(context: JobContext) -> None:
    await recurses(context)


@misuse
async def leaves_a_generator(_: JobContext) -> str:
    async def numbers() -> Any:
        try:
            yield 1
        finally:
            await asyncio.sleep(0.01)

    async for _number in numbers():
        break
    generator = numbers()
    await anext(generator)
    del generator
    gc.collect()
    return "done"


@misuse
async def returns_a_coroutine(_: JobContext) -> Any:
    return raises_stop_iteration(_)


@misuse
async def returns_a_generator(_: JobContext) -> Any:
    return (number for number in range(3))


@misuse
async def forgets_an_error(_: JobContext) -> str:
    asyncio.create_task(raises_stop_iteration(_))  # noqa: RUF006 - the point
    asyncio.get_running_loop().create_future().set_exception(ValueError("nobody looks"))
    await asyncio.sleep(0)
    gc.collect()
    return "done"


@misuse
async def starts_20_000_tasks(_: JobContext) -> str:
    tasks = [asyncio.create_task(asyncio.sleep(1000)) for _number in range(20_000)]
    await asyncio.sleep(0)
    return f"{len(tasks)}"


@misuse
async def handles_signals(_: JobContext) -> str:
    loop, seen = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await seen.wait()
    return "done"


@misuse
async def leaves_an_alarm(_: JobContext) -> str:
    signal.alarm(1)
    return "done"


@misuse
async def forks(_: JobContext) -> str:
    if os.fork() == 0:
        asyncio.run(asyncio.sleep(0))
    return "done"


@misuse
async def runs_a_program_that_stays(_: JobContext) -> str:
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(1000)")
    return str(program.pid)


@misuse
async def closes_descriptors(_: JobContext) -> str:
    await asyncio.sleep(0.01)
    os.closerange(3, 1000)
    return "done"


@misuse
async def uses_another_context(_: JobContext) -> str:
    context = contextvars.Context()
    await asyncio.create_task(asyncio.sleep(0.01), context=context)
    context.run(asyncio.get_running_loop().call_soon, lambda: None)
    return "done"


@misuse
async def speaks_from_everywhere(context: JobContext) -> str:
    def say() -> None:
        context.progress(0.5, "half")
        context.logger.info("from a thread")
        (context.tempdir / str(threading.get_ident())).write_text("x")

    async def send(number: int) -> None:
        context.send("nap", {"seconds": number})
        say()

    threads = [threading.Thread(target=say) for _ in range(4)]
    for each in threads:
        each.start()
    await asyncio.gather(*(send(number) for number in range(10)), *(asyncio.to_thread(say) for _ in range(10)))
    for each in threads:
        each.join()
    return "done"


@misuse
async def cancels_everybody(_: JobContext) -> str:
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            task.cancel()
    return "done"


@misuse
async def holds_a_lock(_: JobContext) -> None:
    if not _lock:
        _lock.append(asyncio.Lock())
    async with _lock[0]:
        await asyncio.sleep(1000)


@misuse
async def keeps_all_threads(_: JobContext) -> None:
    await asyncio.gather(*(asyncio.to_thread(time.sleep, 1000) for _ in range(100)))


@misuse
async def leaves_a_callback_that_ends_the_process(_: JobContext) -> str:
    asyncio.get_running_loop().call_later(0.05, os._exit, 9)
    return "done"


@misuse
async def ends_in_its_destructor(_: JobContext) -> str:
    class Ends:
        def __del__(self) -> None:
            sys.exit(3)

    Ends()
    return "done"


@misuse
async def exhausts_memory(_: JobContext) -> int:
    return len(b"x" * (1 << 40))


@misuse
async def returns_much(_: JobContext) -> str:
    return "x" * 7_000_000


@misuse
async def waits_in_threads(_: JobContext) -> str:
    await asyncio.to_thread(time.sleep, 0.01)
    return "done"
