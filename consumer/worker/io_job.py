"""One job in an io child: what it has started in the loop, and what of the loop's time was its own."""

import asyncio
import contextvars
import os
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from threading import local
from time import thread_time, time
from typing import TYPE_CHECKING, Any

from consumer.worker.mark import THREADS, Mark
from consumer.worker.timer import SPENT

if TYPE_CHECKING:
    from consumer.worker.scope import Scope

_Main = Coroutine[Any, Any, Any] | Generator[Any, None, Any]


class IoJob:
    """`ended_by` says why it had to end; `tasks` and `threads` are what runs of it now."""

    def __init__(self, number: int, cpu_limit: float) -> None:
        """`cpu_limit`: seconds of CPU in the loop, 0 for any."""
        self.id = number
        self.cpu_limit = cpu_limit or inf
        self.started_at = time()
        self.timeout = 0.0
        self.cpu_seconds = 0.0
        self.ended_by: bytes | None = None
        self.scope: Scope | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        self.threads: set[int] = set()

    def start(self, main: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """In a context of its own, which all that it starts inherits."""
        context = contextvars.copy_context()
        context.run(_job.set, self)
        self.main = asyncio.get_running_loop().create_task(main, context=context)
        return self.main

    def end(self, why: bytes) -> None:
        """Not at once: a task that is cancelled before its first step does not begin."""
        if self.ended_by is None:
            self.ended_by = why
            asyncio.get_running_loop().call_soon(self.main.cancel)

    def pay(self, cpu_seconds: float) -> None:
        self.cpu_seconds += cpu_seconds
        if self.cpu_seconds > self.cpu_limit:
            self.end(SPENT)

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
    in_copy = False

    def run(handle: Any) -> None:
        job = handle._context.get(_job)  # noqa: SLF001
        if job is None:
            mark.enter(0)
            plain(handle)
            return
        mark.enter(job.id)
        began = thread_time()
        try:  # noqa: SIM105 - this is done for each step
            plain(handle)
        except (SystemExit, KeyboardInterrupt):
            pass  # they would end the loop, and the task has them already
        if in_copy:  # a handler forked, and this is the copy of us
            os._exit(0)
        mark.leave()
        job.pay(thread_time() - began)

    def become_a_copy() -> None:
        """Loops that the copy begins itself are no business of ours."""
        nonlocal in_copy
        in_copy = True
        handles._run = plain  # noqa: SLF001

    handles._run = run  # noqa: SLF001
    os.register_at_fork(after_in_child=become_a_copy)


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
        self.started = 0
        super().__init__(THREADS, "job", self._begin_thread)

    def _begin_thread(self) -> None:
        self._local.number = self.started
        self.started += 1

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
