"""The threads of an async job: what `asyncio.to_thread` and the loop itself use."""

from _thread import _count as threads_running
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from typing import Any

from consumer.worker.mark import THREADS, Mark

MOST = 32
"""How many a job may have at a time. Whatever else it has to do in threads waits for them."""


class Seats:
    """The places in the mark where threads say whose function they run. What finds none is a stranger."""

    def __init__(self, mark: Mark) -> None:
        self._mark = mark
        self._free: list[int] = [*range(THREADS)]

    def take(self, job_id: int) -> int | None:
        with suppress(IndexError):
            number = self._free.pop()
            self._mark.thread(number, job_id)
            return number
        return None

    def leave(self, number: int | None) -> None:
        if number is not None:
            self._mark.thread(number, 0)
            self._free.append(number)

    def count_strangers(self) -> None:
        seated = THREADS - len(self._free)
        self._mark.strangers(max(0, threads_running() - seated))


class JobThreads(Executor):
    """Each has its own, so that one that blocks all of its threads takes none from the others.

    A thread ends when there is nothing more to do: so `running` are those that the job left behind, if it is over.
    """

    def __init__(self, seats: Seats, job_id: int) -> None:
        self.running = 0
        self._seats = seats
        self._job_id = job_id
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = allocate_lock()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self.running < MOST:
                self._start()
            self._waiting.append((future, partial(function, *args, **kwargs)))
        return future

    def _start(self) -> None:
        seat = self._seats.take(self._job_id)
        try:
            start_new_thread(self._work, (seat,))
        except RuntimeError:  # there is no memory for its stack
            self._seats.leave(seat)
            raise
        self.running += 1

    def drop(self) -> None:
        """Nobody waits any more for what has not begun."""
        with self._lock:
            self._waiting.clear()

    def _work(self, seat: int | None) -> None:
        while task := self._next():
            _run(*task)
            del task
        self._seats.leave(seat)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self.running -= 1
            return None


def _run(future: "Future[Any]", function: Callable[[], Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001 - also what would end a thread
            future.set_exception(error)
