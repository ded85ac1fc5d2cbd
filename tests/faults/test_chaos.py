"""A short run of the chaos, whose long runs are `make faults`."""

import asyncio

from tests.faults.chaos import Plan, run
from tests.support.postgres import Postgres
from tests.support.rabbit import Rabbit

SEED = 3


def test_two_daemons_lose_nothing_double_nothing_and_charge_nobody_whatever_breaks_around_them() -> None:
    told: list[str] = []
    with Rabbit() as rabbit, Postgres(durable=True) as postgres:
        report, damage = asyncio.run(run(Plan(12, 1_000, SEED, pause=(0.1, 0.7)), rabbit, postgres, told.append))
    assert report.wrong == [], "\n".join(told)
    assert len(damage.done) >= 8
    assert report.succeeded + report.failed == 1_000
