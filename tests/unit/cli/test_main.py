"""Whoever is interrupted says so, but a daemon that has nothing in hand."""

import signal
import sys
from typing import Any

import pytest

from consumer.cli import commands, main


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [("run", signal.SIGTERM, 0), ("dead", signal.SIGINT, 130), ("dead", signal.SIGTERM, 143)],
)
def test_only_a_daemon_that_has_not_begun_is_done_when_it_is_interrupted(
    command: str, number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app_with(_: str | None) -> Any:
        return lambda: signal.raise_signal(number)

    before = [(one, signal.getsignal(one)) for one in (signal.SIGTERM, signal.SIGINT)]
    monkeypatch.setattr(commands, "app_with", app_with)
    monkeypatch.setattr(sys, "argv", ["consumer", command, "list"])
    try:
        with pytest.raises(SystemExit) as left:
            main.main()
    finally:
        for one, handler in before:
            signal.signal(one, handler)
    assert left.value.code == code
    assert capsys.readouterr().err == ("consumer: interrupted\n" if code else "")
