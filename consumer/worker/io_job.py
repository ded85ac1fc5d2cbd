"""One job in an io child: what it has started in the loop, and what of the loop's time was its own."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from threading import local
from time import thread_time
from typing import Any

from consumer.worker.mark import THREADS, Mark

_Main = Coroutine[Any, Any, Any] | Generator[Any, None, Any]


class IoJob:
    """`ended_by` says why the parent wanted its end; `tasks` and `threads` are what runs of it now."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.cpu_seconds = 0.0
        self.ended_by: bytes | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        self.threads: set[int] = set()

    def start(self, main: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """In a context of its own, which all that it starts inherits."""
        context = contextvars.copy_context()
        context.run(_job.set, self)
        return asyncio.get_running_loop().create_task(main, context=context)

    def cancel_all(self) -> set[asyncio.Task[Any]]:
        tasks = set(self.tasks)
        for task in tasks:
            task.cancel()
        return tasks


_job: contextvars.ContextVar[IoJob] = contextvars.ContextVar("job")


def follow_steps(mark: Mark) -> None:
    """Let the loop say whose step it runs, be it of a task or a callback: each goes by its handle and has its context.

    It happens in a process that is ours, and there is no official way to it.
    """
    handles: Any = asyncio.Handle
    plain = handles._run  # noqa: SLF001

    def run(handle: Any) -> None:
        job = handle._context.get(_job)  # noqa: SLF001
        if job is None:
            mark.enter(0)
            plain(handle)
            return
        mark.enter(job.id)
        began = thread_time()
        try:
            plain(handle)
        except (SystemExit, KeyboardInterrupt):
            pass  # they would end the loop, and the task has them already
        finally:
            mark.leave()
            job.cpu_seconds += thread_time() - began

    handles._run = run  # noqa: SLF001


def follow_tasks(loop: asyncio.AbstractEventLoop, main: _Main, **options: Any) -> asyncio.Task[Any]:
    """A task factory: whose task it is, its context says. One with an empty context outlives the job that began it."""
    task = asyncio.Task(main, loop=loop, **options)
    context = options.get("context")
    job = _job.get(None) if context is None else context.get(_job)
    if job is not None:
        job.tasks.add(task)
        task.add_done_callback(job.tasks.discard)
    return task


class FollowedThreads(ThreadPoolExecutor):
    """What `asyncio.to_thread` and the loop itself use: each thread says whose function it runs."""

    def __init__(self, mark: Mark) -> None:
        self._mark = mark
        self._local = local()
        numbers = count()
        super().__init__(THREADS, "job", lambda: setattr(self._local, "number", next(numbers)))

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(self._follow, _job.get(None), function, args, kwargs)

    def _follow(self, job: IoJob | None, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if job is None:
            return function(*args, **kwargs)
        number = self._local.number
        job.threads.add(number)
        self._mark.thread(number, job.id)
        try:
            return function(*args, **kwargs)
        finally:
            self._mark.thread(number, 0)
            job.threads.discard(number)
