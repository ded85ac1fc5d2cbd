"""One job in an io child: what it has started in the loop, and what of the loop's time was its own."""

import contextvars
from asyncio import Task, get_running_loop
from collections.abc import Coroutine
from math import inf
from time import time
from typing import TYPE_CHECKING, Any

from consumer.worker.job_threads import JobThreads
from consumer.worker.timer import SPENT

if TYPE_CHECKING:
    from consumer.worker.scope import Scope


class JobTask(Task[Any]):
    """Only its owner can cancel it, and we; so one job can't cancel all others, as those do that want to tidy up."""

    owner: object = None

    def cancel(self, msg: Any = None) -> bool:
        by = current.get(None)
        return (by is None or self.owner in (None, by)) and super().cancel(msg)


class IoJob:
    """`ended_by` says why it had to end; `tasks` are those that run of it now."""

    def __init__(self, number: int, cpu_limit: float, threads: JobThreads) -> None:
        """`cpu_limit`: seconds of CPU in the loop, 0 for any."""
        self.id = number
        self.cpu_limit = cpu_limit or inf
        self.started_at = time()
        self.timeout = 0.0
        self.cpu_seconds = 0.0
        self.ended_by: bytes | None = None
        self.scope: Scope | None = None
        self.tasks: set[JobTask] = set()
        self.threads = threads

    def start(self, main: Coroutine[Any, Any, Any]) -> JobTask:
        """In a context of its own, which all that it starts inherits."""
        context = contextvars.copy_context()
        context.run(current.set, self)
        self.main = JobTask(main, loop=get_running_loop(), context=context)
        self.follow(self.main)
        return self.main

    def follow(self, task: JobTask) -> None:
        task.owner = self
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def end(self, why: bytes) -> None:
        """Not at once: a task that is cancelled before its first step does not begin."""
        if self.ended_by is None:
            self.ended_by = why
            get_running_loop().call_soon(self.main.cancel)

    def pay(self, cpu_seconds: float) -> None:
        self.cpu_seconds += cpu_seconds
        if self.cpu_seconds > self.cpu_limit:
            self.end(SPENT)

    def cancel_all(self) -> set[JobTask]:
        tasks = set(self.tasks)
        for task in tasks:
            task.cancel()
        return tasks


current: contextvars.ContextVar[IoJob] = contextvars.ContextVar("job")
