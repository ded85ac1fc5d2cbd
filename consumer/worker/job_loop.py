"""The event loop of an io child: it says whose step it runs, and one job can't change it for the others."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from time import thread_time
from typing import Any

from consumer.worker import own_hand
from consumer.worker.io_job import IoJob, JobTask, current
from consumer.worker.job_threads import JobThreads, Seats
from consumer.worker.mark import Mark


class JobLoop(asyncio.SelectorEventLoop):
    """Its tasks are ours to make and its threads ours to choose, whatever factory or executor a job sets."""

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self._seats = Seats(mark)
        self._threads = JobThreads(self._seats, 0)
        self.count_strangers = self._seats.count_strangers
        follow_steps(mark, self)
        own_hand.tell(lambda is_about_to: _note_own_hand(mark, is_about_to=is_about_to))

    def new_job(self, number: int, cpu_limit: float) -> IoJob:
        return IoJob(number, cpu_limit, JobThreads(self._seats, number))

    def create_task(self, main: Coroutine[Any, Any, Any], **options: Any) -> JobTask:  # type: ignore[override]
        """Whose it is, its context says. One with an empty context outlives the job that began it."""
        task = JobTask(main, loop=self, **options)
        context = options.get("context")
        job = current.get(None) if context is None else context.get(current)
        if job is not None:
            job.follow(task)
        return task

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        job = current.get(None)
        return super().run_in_executor(executor or (job.threads if job else self._threads), function, *args)

    async def shutdown_asyncgens(self) -> None:
        """Other jobs are using theirs."""

    def set_debug(self, _enabled: bool) -> None:
        """It makes each task many times slower, for all."""
        super().set_debug(False)


def follow_steps(mark: Mark, loop: JobLoop) -> None:
    """Be it of a task or a callback, each step goes by its handle and has its context.

    It happens in a process that is ours, and there is no official way to it.
    """
    handles: Any = asyncio.Handle
    plain = handles._run  # noqa: SLF001
    in_copy = False

    def run(handle: Any) -> None:
        if handle._loop is not loop:  # noqa: SLF001 - but one that a job began in a thread
            plain(handle)
            return
        job = handle._context.get(current)  # noqa: SLF001
        if job is None:
            mark.enter_unknown()
            plain(handle)
            mark.leave()
            return
        mark.enter(job.id)
        began = thread_time()
        try:  # noqa: SIM105 - this is done for each step
            plain(handle)
        except (SystemExit, KeyboardInterrupt):
            pass  # they would end the loop, and the task has them already
        if in_copy:  # a handler forked, and this is the copy of us
            os._exit(0)
        loop.count_strangers()
        mark.leave()
        job.pay(thread_time() - began)

    def become_a_copy() -> None:
        """Loops that the copy begins are no business of ours, nor is what it does to itself."""
        nonlocal in_copy
        in_copy = True
        handles._run = plain  # noqa: SLF001
        own_hand.tell(own_hand.nobody)

    handles._run = run  # noqa: SLF001
    os.register_at_fork(after_in_child=become_a_copy)


def _note_own_hand(mark: Mark, *, is_about_to: bool) -> None:
    job = current.get(None)
    mark.at_its_own_process(job.id if job is not None and is_about_to else 0)
