"""Jobs that the broker's ack timeout would end the session of."""

import pytest

from consumer.core.ack_timeout import RunTimes, too_long
from consumer.core.findings import Severity

TIMES = RunTimes({"short": 10, "long": 300}, places=2, kill_grace=1)


@pytest.mark.parametrize("timeout", [0, 603, 1800])
def test_runs_that_end_in_time_are_no_finding(timeout: float) -> None:
    assert list(too_long(TIMES, timeout)) == []


def test_a_run_that_may_outlast_the_timeout_is_a_fault_that_names_its_kind() -> None:
    [finding] = too_long(TIMES, 301)
    assert (finding.severity, finding.what) == (Severity.FAULT, "one run of a job")
    assert finding.found == "up to 301 s for long"
    assert finding.wanted == "less than the broker's ack timeout of 301 s"


def test_a_job_that_waits_for_the_run_before_it_is_a_warning() -> None:
    [finding] = too_long(TIMES, 602)
    assert (finding.severity, finding.found) == (Severity.WARNING, "up to 602 s (2 runs, one after the other)")
    assert "pool.look_ahead" in finding.way_out


def test_without_kinds_there_is_nothing_to_wait_for() -> None:
    assert list(too_long(RunTimes({}, 2, 1), 10)) == []
