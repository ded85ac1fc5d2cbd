from dataclasses import replace

import pytest

from consumer.core import cancel
from consumer.core.row import Row, Status
from consumer.status import describe

RUNNING = Row("k", "a", Status.PROCESSING, progress=0.4, progress_note="page 4 of 10")


def test_a_running_job_shows_how_far_it_is() -> None:
    assert describe(RUNNING)["progress"] == {"fraction": 0.4, "note": "page 4 of 10"}


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PROCESSING])
def test_a_job_that_does_not_run_shows_no_progress(status: Status) -> None:
    assert "progress" not in describe(replace(RUNNING, status=status))


def test_a_cancelled_job_shows_who_it_was_and_when() -> None:
    facts = describe(cancel.decide(RUNNING, "k", "a", "ann@laptop", 1_700_000_000_000))
    assert (facts["status"], facts["finished_at"]) == ("cancelled", "2023-11-14T22:13:20.000+00:00")
    assert facts["error"]["code"] == "cancelled"
    assert facts["error"]["message"] == "cancelled by ann@laptop at 2023-11-14T22:13:20+00:00"
