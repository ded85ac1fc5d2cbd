import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from consumer.worker import scratch
from consumer.worker.scratch import Place

NOBODY = 65534


@pytest.fixture(autouse=True)
def folder_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_folders_are_for_our_user_alone_and_each_is_new() -> None:
    place = Place()
    first, second = scratch.make(place.of(17)), scratch.make(place.of(17))
    assert first != second
    for folder in (first, second, first.parent, first.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert first.parent == Path(place.path, "17")


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


@pytest.fixture
def folder_of_a_common_user() -> Iterator[Path]:
    """For root nothing is locked, so that test is for somebody else."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    me = os.geteuid()
    if me == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield folder
    os.seteuid(me)
    folder.rmdir()


def test_what_a_job_locked_is_removed_too(folder_of_a_common_user: Path) -> None:
    inner = folder_of_a_common_user / "folder" / "inner"
    (inner / "innermost").mkdir(parents=True)
    (inner / "file").write_text("x")
    (inner / "innermost").chmod(0)
    inner.chmod(0)
    inner.parent.chmod(0o500)
    scratch.remove(str(inner.parent))
    assert not inner.parent.exists()


def test_no_depth_is_too_deep_and_no_path_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = "d" * 250
    for _ in range(200):
        Path(name).mkdir()
        Path("file").touch()
        os.chdir(name)
    os.chdir("/")
    recursion = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        scratch.remove(str(tmp_path / name))
    finally:
        sys.setrecursionlimit(recursion)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_is_not_there_needs_no_removal_and_what_is_no_folder_goes_too(tmp_path: Path) -> None:
    scratch.remove(str(tmp_path / "never"))
    (tmp_path / "file").touch()
    scratch.remove(str(tmp_path / "file"))
    assert not (tmp_path / "file").exists()


def test_a_place_that_was_abandoned_goes_and_nothing_else(tmp_path: Path) -> None:
    mine, living, dead = Place(), Place(), Place()
    scratch.make(dead.of(1))
    dead.let_go()
    others = [tmp_path / "consumer-jobs-mine", tmp_path / "consumer-jobs-of-last-year"]
    for folder in others:
        folder.mkdir()
    (tmp_path / ("consumer-jobs-" + 32 * "0")).symlink_to(others[0])
    mine.remove_abandoned()
    assert not Path(dead.path).exists()
    assert all(folder.exists() for folder in (Path(mine.path), Path(living.path), *others))


def test_where_nothing_can_be_written_only_who_wants_a_folder_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "never"))
    place = Place()
    place.remove_abandoned()
    place.let_go()
    with pytest.raises(FileNotFoundError, match="there is no folder for temporary files"):
        scratch.make(place.of(1))
