"""What the daemon exports, and whether an expression asks for anything else."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import promql_parser
from prometheus_client import CollectorRegistry

from consumer.core.delay import Ladder
from consumer.core.topology import build
from consumer.metrics import Metrics
from consumer.watch import Watch

TARGET_LABELS = {"namespace", "job", "pod"}
OPEN_LABELS = {"queue", "kind", "error_type", "le"}
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}


@dataclass(frozen=True)
class Series:
    """`values` holds, for the labels that are closed sets, everything that they can be."""

    labels: frozenset[str]
    values: dict[str, set[str]]


@dataclass(frozen=True)
class Depth:
    ready: int = 0
    consumers: int = 0


class EmptyBroker:
    """A session that knows every queue, and nothing in it."""

    consumer = None

    async def depths(self, queues: Sequence[str]) -> dict[str, Depth]:
        return dict.fromkeys(queues, Depth())

    async def blocked(self) -> bool:
        return False

    def end(self, reason: str, detail: str) -> None:
        raise AssertionError(f"{reason}: {detail}")


@cache
def exported() -> dict[str, Series]:
    """All series of a daemon that has started and looked at its queues once."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, "default")
    metrics.expect([])
    topology = build("jobs", "default", Ladder("jobs"), delivery_limit=100)
    asyncio.run(Watch(topology, metrics, lambda: None, 30).look(EmptyBroker()))
    series: dict[str, Series] = {"up": Series(frozenset(), {})}
    ours = [family for family in registry.collect() if family.name.startswith("consumer_")]
    for family in ours:
        names = getattr(registry._names_to_collectors[family.name], "_labelnames", ())
        values: dict[str, set[str]] = defaultdict(set)
        for sample in family.samples:
            for label, value in sample.labels.items():
                values[label].add(value)
        for suffix in SUFFIXES[family.type]:
            labels = {*names, "le"} if suffix == "_bucket" else set(names)
            series[family.name + suffix] = Series(frozenset(labels), values)
    return series


def complaints(expression: str, series: dict[str, Series]) -> Iterator[str]:
    """What of a PromQL expression the daemon would never answer."""
    found: list[promql_parser.VectorSelector] = []

    def keep(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(expression), keep)
    for selector in found:
        if selector.name not in series:
            yield f"no metric {selector.name}"
            continue
        known = series[selector.name]
        for matcher in selector.matchers.matchers:
            if matcher.name in TARGET_LABELS:
                continue
            if matcher.name not in known.labels:
                yield f"{selector.name} has no label {matcher.name}"
            elif matcher.name not in OPEN_LABELS:
                for value in set(re.split(r"\|", matcher.value)) - known.values[matcher.name]:
                    yield f"{selector.name} never has {matcher.name}={value}"
