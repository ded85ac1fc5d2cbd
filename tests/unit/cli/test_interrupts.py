"""Whoever is interrupted closes what it opened; whoever is interrupted twice doesn't wait for that."""

import asyncio
import signal
from collections.abc import Iterator
from types import FrameType

import pytest
import typer

from consumer.cli.interrupts import SIGNALS, finish


class AtOnce(Exception):
    """What the handler of these tests raises."""


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    def raise_it(_number: int, _frame: FrameType | None) -> None:
        raise AtOnce

    before = [(number, signal.signal(number, raise_it)) for number in SIGNALS]
    yield
    for number, handler in before:
        signal.signal(number, handler)


def test_what_ends_by_itself_gives_its_answer_and_leaves_the_handlers_as_they_were() -> None:
    async def work() -> int:
        return 5

    assert finish(work()) == 5
    with pytest.raises(AtOnce):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_closes_what_it_opened_and_says_so(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = []

    async def work() -> None:
        try:
            signal.raise_signal(number)
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    with pytest.raises(typer.Exit) as left:
        finish(work())
    assert (left.value.exit_code, closed) == (code, [True])
    assert capsys.readouterr().err == "consumer: interrupted\n"


def test_the_second_signal_ends_a_command_that_does_not_come_to_its_end() -> None:
    async def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()

    with pytest.raises(AtOnce):
        finish(work())
