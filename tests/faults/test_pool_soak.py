"""Short runs of what `make soak` does for minutes."""

import pytest

from tests.faults.pool_soak import Plan, run, strike_results

SEED = 5


@pytest.mark.quiet
async def test_each_job_of_a_pool_under_fire_has_the_outcome_that_it_deserves() -> None:
    told: list[str] = []
    soak = await run(Plan(jobs=500, seed=SEED), told.append)
    assert soak.gauges.wrong == [], str(soak.gauges)
    assert soak.gauges.kills > 8
    assert soak.hits > 3


async def test_children_killed_while_they_return_5_mb_never_hang_the_pool() -> None:
    came, lost = await strike_results(rounds=40, size=5_000_000, every=0.0015)
    assert came + lost == 80
    assert came > 8
    assert lost > 8
