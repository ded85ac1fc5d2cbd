"""A full disk is no bug."""

import errno
import sys

import pytest
import typer

from consumer.cli.output import errors_as_sentences


def test_a_disk_that_is_full_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with pytest.raises(typer.Exit) as left, errors_as_sentences():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert left.value.exit_code == 1
    assert capsys.readouterr().err == "consumer: the output can't be written: No space left on device\n"


def test_a_reader_who_has_seen_enough_is_left_to_whoever_started_the_command() -> None:
    with pytest.raises(BrokenPipeError), errors_as_sentences():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
