"""Whoever is interrupted says so, but a daemon that has nothing in hand."""

import io
import os
import signal
import sys
from collections.abc import Iterator

import pytest
import typer

from consumer.cli import commands, main


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [("run", signal.SIGTERM, 0), ("dead", signal.SIGINT, 130), ("dead", signal.SIGTERM, 143)],
)
def test_only_a_daemon_that_has_not_begun_is_done_when_it_is_interrupted(
    command: str, number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "app_with", lambda _: lambda: signal.raise_signal(number))
    monkeypatch.setattr(sys, "argv", ["consumer", command, "list"])
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == code
    assert capsys.readouterr().err == ("consumer: interrupted\n" if code else "")


def test_a_terminal_that_has_not_all_characters_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(commands, "app_with", lambda _: lambda: typer.echo("für 日本"))
    main.main()
    terminal.seek(0)
    assert terminal.read() == "für \\u65e5\\u672c\n"
