"""Threads here are real, and wait for each other."""

import os
import threading

import pytest

from consumer.worker import job_threads
from consumer.worker.job_threads import JobThreads, Seats
from consumer.worker.mark import Mark, shared_memory


@pytest.fixture
def mark() -> Mark:
    memory = shared_memory()
    mark = Mark(memory)
    os.close(memory)
    return mark


def test_what_a_function_returns_or_raises_comes_back(mark: Mark) -> None:
    threads = JobThreads(Seats(mark), 7)
    assert threads.submit(pow, 2, exp=3).result(10) == 8
    assert threads.busy == 0, "at once, for the job may be over now"
    assert isinstance(threads.submit(exec, "raise SystemExit(3)").exception(10), SystemExit)


def test_a_job_that_blocks_all_of_its_threads_takes_none_from_another(
    mark: Mark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_threads, "MOST", 2)
    seats, begun, release = Seats(mark), threading.Semaphore(0), threading.Event()
    hog, other = JobThreads(seats, 7), JobThreads(seats, 8)

    def block() -> bool:
        begun.release()
        return release.wait(10)

    blocked = [hog.submit(block) for _ in range(5)]
    assert begun.acquire(timeout=10)
    assert begun.acquire(timeout=10)
    assert other.submit(int).result(10) == 0
    assert (hog.busy, mark.in_threads >= {7}) == (2, True)
    release.set()
    assert [each.result(10) for each in blocked] == [True] * 5


def test_what_has_not_begun_is_dropped_with_its_job(mark: Mark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_threads, "MOST", 1)
    threads, both = JobThreads(Seats(mark), 7), threading.Barrier(2)
    first, second = threads.submit(lambda: both.wait(10) + both.wait(10)), threads.submit(int)
    both.wait(10)
    threads.drop()
    both.wait(10)
    assert first.result(10) >= 0
    assert not second.done()


def test_more_threads_than_the_mark_has_places_for_are_strangers(mark: Mark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_threads, "THREADS", 1)
    seats, begun, over = Seats(mark), threading.Barrier(3), threading.Event()
    threads = JobThreads(seats, 7)
    waiting = [threads.submit(lambda: begun.wait(10) < 3 and over.wait(10)) for _ in range(2)]
    begun.wait(10)
    seats.count_strangers()
    assert mark.has_strangers
    assert mark.in_threads == {7}
    over.set()
    assert all(each.result(10) for each in waiting)


def test_a_thread_that_can_t_be_started_takes_no_place(mark: Mark, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(job_threads, "start_new_thread", no_memory)
    monkeypatch.setattr(job_threads, "THREADS", 1)
    seats = Seats(mark)
    threads = JobThreads(seats, 7)
    with pytest.raises(RuntimeError, match="can't start"):
        threads.submit(int)
    assert seats.take() is not None
    assert not mark.in_threads
