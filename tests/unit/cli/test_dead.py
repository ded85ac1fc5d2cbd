"""An export takes the place of a file, and of nothing else."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from config.settings import Settings
from consumer.cli import dead
from consumer.core.letter_index import Wanted
from consumer.core.letters import Letter
from consumer.dead import looks


@pytest.fixture(autouse=True)
def _no_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    async def export(*_: object) -> AsyncIterator[Letter]:
        letters: list[Letter] = []
        for letter in letters:
            yield letter

    monkeypatch.setattr(looks, "export", export)


def write(path: Path) -> int:
    return dead._write_file(Settings(), Wanted("default"), path)


def test_a_link_still_leads_to_the_file_that_was_written(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_text() == ""


def test_a_pipe_or_a_device_is_written_to_and_stays_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write(tmp_path / "pipe")
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_an_export_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(looks, "export", lambda *_: (_ for _ in ()).throw(SystemExit(130)))
    with pytest.raises(SystemExit):
        write(tmp_path / "old")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "old")]
