"""The threads of an async job: what `asyncio.to_thread` and the loop itself use."""

from _thread import _count as threads_running
from _thread import allocate_lock, start_new_thread
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
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

    def take(self) -> int | None:
        return self._free.pop() if self._free else None

    def leave(self, seat: int | None) -> None:
        if seat is not None:
            self._free.append(seat)

    def works(self, seat: int | None, job_id: int) -> None:
        if seat is not None:
            self._mark.thread(seat, job_id)

    def count_strangers(self) -> None:
        seated = THREADS - len(self._free)
        self._mark.strangers(max(0, threads_running() - seated))


class JobThreads(Executor):
    """Each job has its own, so that one that blocks all of its threads takes none from the others.

    A thread ends when there is nothing more to do. `busy`: how many run a function now.
    """

    def __init__(self, seats: Seats, job_id: int) -> None:
        self.busy = 0
        self._running = 0
        self._seats = seats
        self._job_id = job_id
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = allocate_lock()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._running < MOST:
                self._start()
            self._waiting.append((future, partial(function, *args, **kwargs)))
        return future

    def drop(self) -> None:
        """Nobody waits any more for what has not begun."""
        with self._lock:
            self._waiting.clear()

    def _start(self) -> None:
        seat = self._seats.take()
        try:
            start_new_thread(self._work, (seat,))
        except RuntimeError:  # there is no memory for its stack
            self._seats.leave(seat)
            raise
        self._running += 1

    def _work(self, seat: int | None) -> None:
        while task := self._next():
            self._run(seat, *task)
            del task
        self._seats.leave(seat)

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if not self._waiting:
                self._running -= 1
                return None
            self.busy += 1
            return self._waiting.popleft()

    def _run(self, seat: int | None, future: "Future[Any]", function: Callable[[], Any]) -> None:
        result, error = None, None
        self._seats.works(seat, self._job_id)
        if future.set_running_or_notify_cancel():
            try:
                result = function()
            except BaseException as raised:  # noqa: BLE001 - also what would end a thread
                error = raised
        self._seats.works(seat, 0)
        with self._lock:  # before the answer, which may be all that the job waits for
            self.busy -= 1
        if error is not None:
            future.set_exception(error)
            del error  # it holds this frame, which holds it
        elif not future.cancelled():
            future.set_result(result)
