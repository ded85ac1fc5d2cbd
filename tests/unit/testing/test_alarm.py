import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from consumer.testing.alarm import alarm
from consumer.worker.handler import JobTimeout

PATIENCE = 10


@contextmanager
def somebody_times_the_test(seconds: float) -> Iterator[threading.Event]:
    """As pytest-timeout does, whose own timer goes on afterwards."""
    rung = threading.Event()
    handler = signal.signal(signal.SIGALRM, lambda *_: rung.set())
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield rung
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, left)


def test_what_overruns_hears_of_it_once_and_whoever_times_the_test_goes_on() -> None:
    with somebody_times_the_test(30) as rung:
        theirs = signal.getsignal(signal.SIGALRM)
        with pytest.raises(JobTimeout, match=r"ran longer than its execution timeout of 0.01 s"), alarm(0.01):
            threading.Event().wait()
        assert 25 < signal.getitimer(signal.ITIMER_REAL)[0] < 30
        assert signal.getsignal(signal.SIGALRM) is theirs
    assert not rung.is_set()


def test_where_the_test_is_to_end_first_it_does() -> None:
    with somebody_times_the_test(0.01) as rung, alarm(10):
        assert rung.wait(PATIENCE)


def test_a_time_that_ends_meanwhile_is_over_afterwards() -> None:
    with somebody_times_the_test(0.02) as rung:
        with pytest.raises(JobTimeout), alarm(0.01):
            overrun_by(0.02)
        assert rung.wait(PATIENCE)


def overrun_by(seconds: float) -> None:
    """As a handler does that cleans up for so long."""
    try:
        threading.Event().wait()
    finally:
        threading.Event().wait(seconds)


def test_what_is_in_time_hears_nothing() -> None:
    with somebody_times_the_test(0) as rung:
        with alarm(10):
            pass
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert not rung.is_set()


def test_in_another_thread_no_signal_is_used() -> None:
    before = signal.getsignal(signal.SIGALRM)
    seen: list[object] = []

    def run() -> None:
        with alarm(0.001):
            seen.append(signal.getsignal(signal.SIGALRM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]
