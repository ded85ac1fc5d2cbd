"""A short run of the soak of io children, whose long runs are in `make soak`."""

import pytest

from tests.faults.io_soak import run

JOBS, SEED = 120, 3


@pytest.mark.quiet
async def test_whatever_async_jobs_do_and_whoever_kills_their_children_each_gets_what_it_deserves() -> None:
    gauges = await run(JOBS, SEED)
    assert gauges.wrong == [], str(gauges)
    assert gauges.outcomes.total() == JOBS
    assert gauges.kills > 2
