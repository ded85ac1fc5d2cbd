import logging

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from consumer.leases import LeaseKeeper
from consumer.metrics import Metrics
from consumer.observing import PoolObserver
from consumer.progress import Progress
from tests.contract.stores import KIND, claim_of, row_of, run_of
from tests.support.twins import World


class Watched:
    def __init__(self) -> None:
        self.world = World()
        self.leases = LeaseKeeper(self.world.store, 60_000)
        self.progress = Progress(self.world.store, self.leases)
        self.metrics = Metrics(CollectorRegistry(), "default")
        self.observer = PoolObserver(self.metrics, self.progress)


async def test_the_end_of_a_child_is_counted() -> None:
    watched = Watched()
    watched.observer.child_exited("io", "crash")
    name, labels = "consumer_child_exits_total", {"pool": "io", "reason": "crash"}
    assert watched.metrics.registry.get_sample_value(name, labels) == 1


async def test_the_progress_of_a_job_reaches_its_row() -> None:
    watched = Watched()
    watched.leases.hold(await run_of(watched.world.store, claim_of("a")))
    watched.observer.progressed(KIND, "a", 0.5, "half")
    await watched.progress.write()
    row = await row_of(watched.world.store, "a")
    assert (row.progress, row.progress_note) == (0.5, "half")


@pytest.mark.parametrize(("kind", "about"), [("k", {"kind": "k", "key": "a", "attempt": 2}), ("", {})])
async def test_what_a_job_says_is_a_field_of_one_log_line(kind: str, about: dict[str, object]) -> None:
    with capture_logs() as lines:
        Watched().observer.said(kind, "a", "stderr", 'x\n{"event": "forged"}', attempt=2, level=logging.WARNING)
    text = {"stream": "stderr", "text": 'x\n{"event": "forged"}'}
    assert lines == [{"event": "job said", "log_level": "warning", **about, **text}]


@pytest.mark.parametrize(("level", "known"), [(5, "debug"), (25, "info"), (30, "warning"), (1000, "critical")])
async def test_a_level_that_is_none_of_ours_counts_as_the_one_below(level: int, known: str) -> None:
    with capture_logs() as lines:
        Watched().observer.said("k", "a", "a.library", "x", level=level)
    assert [line["log_level"] for line in lines] == [known]
