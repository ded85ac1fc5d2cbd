import os
import stat
from pathlib import Path

import pytest

from consumer.worker import scratch


def test_a_place_is_one_that_nobody_can_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = scratch.new_place(), scratch.new_place()
    assert first != second
    assert not Path(first).exists()


def test_folders_are_for_our_user_alone_and_each_is_new(tmp_path: Path) -> None:
    place = scratch.place_of(17, str(tmp_path / "place"))
    first, second = scratch.make(place), scratch.make(place)
    assert first != second
    for folder in (first, second, first.parent, first.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert first.parent == tmp_path / "place" / "17"


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "dear").mkdir()
    (tmp_path / "dear" / "file").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "to a folder").symlink_to(tmp_path / "dear")
    (folder / "to a file").symlink_to(tmp_path / "dear" / "file")
    (tmp_path / "link").symlink_to(tmp_path / "dear")
    scratch.remove(str(folder))
    scratch.remove(str(tmp_path / "link"))
    assert [*tmp_path.iterdir()] == [tmp_path / "dear"]
    assert (tmp_path / "dear" / "file").read_text() == "x"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is locked for root")
def test_what_a_job_locked_is_removed_too(tmp_path: Path) -> None:
    inner = tmp_path / "folder" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0)
    inner.parent.chmod(0o500)
    scratch.remove(str(inner.parent))
    assert not inner.parent.exists()


def test_what_is_not_there_needs_no_removal(tmp_path: Path) -> None:
    scratch.remove(str(tmp_path / "never"))
