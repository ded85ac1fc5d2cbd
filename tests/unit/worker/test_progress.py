from threading import Event

import pytest

from consumer.worker.progress import Progress

Mark = tuple[float, str]


def test_what_comes_too_soon_is_told_later_and_only_the_latest_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumer.worker.progress.INTERVAL", 0.2)
    told: list[Mark] = []
    twice = Event()

    def tell(fraction: float, note: str) -> None:
        told.append((fraction, note))
        if len(told) == 2:
            twice.set()

    progress = Progress(tell)
    for number in range(100):
        progress.is_at(number / 100, "")
    assert told == [(0.0, "")]
    assert twice.wait(timeout=10)
    assert told == [(0.0, ""), (0.99, "")]
    progress.close()
    assert len(told) == 2


def test_what_was_held_is_told_when_the_run_is_over() -> None:
    told: list[Mark] = []
    progress = Progress(lambda fraction, note: told.append((fraction, note)))
    progress.is_at(0.1, "a")
    progress.is_at(0.2, "b")
    progress.close()
    assert told == [(0.1, "a"), (0.2, "b")]


def test_where_no_thread_can_be_had_it_is_told_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    told: list[Mark] = []
    progress = Progress(lambda fraction, note: told.append((fraction, note)))
    progress.is_at(0.1, "a")
    progress.is_at(0.2, "b")
    progress.close()
    assert told == [(0.1, "a"), (0.2, "b")]
