"""What a scrape shows before anything has happened."""

from itertools import product

from prometheus_client import CollectorRegistry

from consumer.core.error_types import MOST_PAIRS
from consumer.metrics import EXIT_REASONS, PUBLISH_RESULTS, PUBLISH_TARGETS, Metrics
from consumer.worker.catalogue import Sort
from schemas.codes import Code

FORBIDDEN_LABELS = {"job", "instance", "namespace", "pod", "container", "service", "endpoint"}
SERIES_BUDGET = 2_500


def metrics_of(kinds: int) -> Metrics:
    metrics = Metrics(CollectorRegistry(), "default")
    metrics.expect(f"kind-{number}" for number in range(kinds))
    return metrics


def registry_with(kinds: int) -> CollectorRegistry:
    return metrics_of(kinds).registry


def test_every_bound_label_set_is_there_at_zero_from_the_start() -> None:
    registry = registry_with(2)
    for kind in ("kind-0", "kind-1", "_unknown"):
        for code in Code:
            labels = {"queue": "default", "kind": kind, "code": code}
            assert registry.get_sample_value("consumer_dead_letters_total", labels) == 0
        labels = {"breaker": "kind", "kind": kind}
        assert registry.get_sample_value("consumer_breaker_open", labels) == 0
    for breaker in ("intake", "dead_letter"):
        assert registry.get_sample_value("consumer_breaker_open", {"breaker": breaker, "kind": ""}) == 0
    for target, result in product(PUBLISH_TARGETS, PUBLISH_RESULTS):
        labels = {"target": target, "result": result}
        assert registry.get_sample_value("consumer_publishes_total", labels) == 0
    for sort, reason in product(Sort, EXIT_REASONS):
        labels = {"pool": sort, "reason": reason}
        assert registry.get_sample_value("consumer_child_exits_total", labels) == 0
    assert registry.get_sample_value("consumer_broker_sessions_total", {"reason": "cancelled"}) == 0


def test_a_kind_that_only_others_run_is_no_label_though_a_shared_store_says_that_it_cools_down() -> None:
    metrics = metrics_of(1)
    metrics.kind_cools("kind-0", True)
    metrics.kind_cools("theirs", True)
    shown = metrics.registry.get_sample_value
    assert shown("consumer_breaker_open", {"breaker": "kind", "kind": "kind-0"}) == 1
    assert shown("consumer_breaker_open", {"breaker": "kind", "kind": "theirs"}) is None


def test_no_label_clashes_with_those_of_the_scraped_target() -> None:
    samples = [sample for family in registry_with(1).collect() for sample in family.samples]
    assert [sample.name for sample in samples if FORBIDDEN_LABELS & sample.labels.keys()] == []


def test_a_pod_of_twenty_kinds_stays_within_the_budget_of_series_whatever_its_handlers_raise() -> None:
    metrics = metrics_of(20)
    for number, name in product(range(20), range(100)):
        kind = f"kind-{number}"
        metrics.exceptions.labels("default", kind, metrics.error_types.label(kind, f"app.E{name}")).inc()
    for role, gauge in product(("work", "delay", "dead"), (metrics.ready, metrics.consumers)):
        gauge.labels("default", role)
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    assert len([sample for sample in samples if sample.name == "consumer_handler_exceptions_total"]) > MOST_PAIRS
    assert len(samples) <= SERIES_BUDGET


def test_there_are_no_created_series() -> None:
    names = {sample.name for family in registry_with(1).collect() for sample in family.samples}
    assert [name for name in names if name.endswith("_created")] == []


def test_the_figures_of_the_pool_are_read_at_the_scrape() -> None:
    class Figures:
        children, busy = {"cpu": 2, "io": 0}, {"cpu": 1, "io": 0}
        running, slots, waiting = 1, 4, 3
        oldest_start: int | None = 5_000

    registry = CollectorRegistry()
    metrics = Metrics(registry, "default")
    figures = Figures()
    metrics.show_pool(lambda: figures, 6)
    labels = {"queue": "default"}
    assert registry.get_sample_value("consumer_jobs_waiting", labels) == 3
    figures.waiting = 0
    assert registry.get_sample_value("consumer_jobs_waiting", labels) == 0
    assert registry.get_sample_value("consumer_child_busy_ratio", {"pool": "cpu"}) == 0.5
    assert registry.get_sample_value("consumer_child_busy_ratio", {"pool": "io"}) == 0
    assert registry.get_sample_value("consumer_children", {"pool": "cpu"}) == 2
    assert registry.get_sample_value("consumer_oldest_running_start_timestamp_seconds", labels) == 5
