import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.stages import Stage, context


def test_progress_reaches_the_stage() -> None:
    stage = Stage()
    about = context(stage=stage)
    about.progress(0)
    about.progress(0.5, "half of it")
    about.progress(True, "all")  # what int and float take is a number
    assert stage.marks == [(0.0, ""), (0.5, "half of it"), (1.0, "all")]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), float("inf"), "much", None])
def test_progress_that_is_no_number_from_0_to_1_is_the_handlers_error(fraction: Any) -> None:
    with pytest.raises(ValueError, match="the progress of a job is a number from 0 to 1"):
        context().progress(fraction)


def test_progress_that_no_float_can_hold_is_the_handlers_error() -> None:
    with pytest.raises(ValueError, match="the progress of a job is a number from 0 to 1"):
        context().progress(10**400)


def test_a_note_that_is_no_text_is_the_handlers_error() -> None:
    with pytest.raises(ValueError, match="the note of a job's progress is text, and not bytes"):
        context().progress(0.5, b"half")  # type: ignore[arg-type]


def test_the_logger_is_one_of_the_standard_library_and_bound_to_the_job(caplog: pytest.LogCaptureFixture) -> None:
    about = context("thumbnail.create", "order-7")
    with caplog.at_level(logging.INFO):
        about.logger.info("%s of %s", 3, 7)
    (record,) = caplog.records
    assert record.getMessage() == "3 of 7"
    assert vars(record).items() >= {"kind": "thumbnail.create", "key": "order-7", "attempt": 1}.items()
    assert about.logger is about.logger


def test_the_folder_is_asked_for_once(tmp_path: Path) -> None:
    class Folders(Stage):
        asked = 0

        def folder(self) -> Path:
            self.asked += 1
            return tmp_path

    stage = Folders()
    about = context(stage=stage)
    assert stage.asked == 0
    assert (about.tempdir, about.tempdir, stage.asked) == (tmp_path, tmp_path, 1)


def test_a_job_sees_that_it_was_cancelled() -> None:
    stage = Stage()
    about = context(stage=stage)
    assert not about.cancelled
    stage.told = True
    assert about.cancelled


def test_a_context_shows_no_more_than_its_names() -> None:
    assert repr(context("a", "b")) == "JobContext(kind='a', key='b', attempt=1)"
