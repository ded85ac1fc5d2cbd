import asyncio

import pytest

from consumer.worker import pulse
from consumer.worker.pulse import Pulse


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "EVERY", 0.001)
    monkeypatch.setattr(pulse, "SILENCE", 0.005)


async def test_one_that_answers_is_asked_for_ever() -> None:
    asked = asyncio.Semaphore(0)
    lost: list[str] = []

    def ask() -> None:
        beat.answered()
        asked.release()

    beat = Pulse(ask, lambda: lost.append("lost"))
    beat.start()
    async with asyncio.timeout(20):
        for _ in range(20):
            await asked.acquire()
    beat.stop()
    assert lost == []


async def test_one_that_is_silent_is_given_up_once() -> None:
    asked: list[str] = []
    lost = asyncio.Event()
    Pulse(lambda: asked.append("asked"), lost.set).start()
    async with asyncio.timeout(20):
        await lost.wait()
    assert len(asked) == 5
