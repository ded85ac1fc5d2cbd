"""What is gone for good is confirmed by its number."""

import pytest
import typer

from consumer.cli import dead_out


@pytest.mark.parametrize("said", ["", "y", "11", "012"])
def test_another_word_than_the_number_purges_nothing(
    said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(typer, "prompt", lambda _: said)
    with pytest.raises(typer.Exit) as left:
        dead_out._confirm(12)
    assert left.value.exit_code == 2
    assert "nothing was purged" in capsys.readouterr().err


def test_the_number_itself_lets_it_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typer, "prompt", lambda question: f" {question.split()[0]} ")
    dead_out._confirm(12)
