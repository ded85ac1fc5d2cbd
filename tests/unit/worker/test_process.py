import os

import pytest

from consumer.worker import process


def test_a_process_that_became_somebody_elses_can_not_be_ended_and_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a program that a job started by sudo."""

    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(os, "killpg", refuse)
    assert not process.kill_group(os.getpid())


def test_nobody_is_hit_where_nobody_is() -> None:
    """0 is no signal, but asks whether one could be sent."""
    assert not process.kill_group(2**22 + 1, 0)
    assert process.kill_group(os.getpid(), 0)
