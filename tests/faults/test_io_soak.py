"""A short run of the soak of io children, whose long runs are `python -m tests.faults.io_soak`."""

import asyncio

from tests.faults.io_soak import run

JOBS, SEED = 250, 3


def test_whatever_async_jobs_do_and_whoever_kills_their_children_each_gets_what_it_deserves() -> None:
    told: list[str] = []
    report = asyncio.run(run(JOBS, SEED, told.append))
    assert report.wrong == [], "\n".join(told)
    assert sum(report.outcomes.values()) == JOBS
    assert report.kills >= 10
