"""The dashboard is what its script draws, and asks only for metrics that exist."""

import json
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.exported import complaints, exported
from tests.chart.rendering import CHART, Release

SCRIPT = CHART / "dashboards" / "build.py"
VARIABLES = {"$__rate_interval": "5m", "$namespace": "prod", "$job": "consumer", "$queue": "default"}


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((CHART / "dashboards" / "consumer.json").read_text(encoding="utf-8"))
    return loaded


def queries(board: dict[str, Any]) -> Iterator[str]:
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"]
            for variable, value in VARIABLES.items():
                text = text.replace(variable, value)
            yield text


def test_the_dashboard_is_what_its_script_draws() -> None:
    drawn = runpy.run_path(str(SCRIPT))["build"]()
    kept = (CHART / "dashboards" / "consumer.json").read_text(encoding="utf-8")
    assert kept == drawn, "Run: python helm/dashboards/build.py"


def test_every_query_parses_and_asks_only_for_what_the_daemon_exports(board: dict[str, Any]) -> None:
    series = exported()
    found = list(queries(board))
    assert found
    assert [text for query in found for text in complaints(query, series)] == []


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("rate(consumer_dead_letter_total[5m])", "no metric consumer_dead_letter_total"),
        ('consumer_publishes_total{queue="a"}', "consumer_publishes_total has no label queue"),
        (
            'consumer_child_exits_total{reason=~"crash|oom"}',
            "consumer_child_exits_total never has reason=oom",
        ),
    ],
)
def test_a_query_for_something_else_is_found(query: str, complaint: str) -> None:
    assert list(complaints(query, exported())) == [complaint]


def test_what_every_pod_sees_alike_is_never_summed(board: dict[str, Any]) -> None:
    for query in queries(board):
        if "consumer_queue_messages_ready" in query or "consumer_queue_consumers" in query:
            assert query.startswith("max by (queue)")
        if "consumer_store_stuck_jobs" in query:
            assert query.startswith("max by (status)")


def test_no_query_is_empty_of_variables_that_grafana_would_not_know(board: dict[str, Any]) -> None:
    assert all("$" not in query for query in queries(board))
    names = {each["name"] for each in board["templating"]["list"]}
    assert names == {"datasource", "namespace", "job", "queue"}


def test_rows_and_panels_have_numbers_and_names_of_their_own(board: dict[str, Any]) -> None:
    panels = board["panels"]
    assert len({each["id"] for each in panels}) == len(panels)
    assert len({each["title"] for each in panels}) == len(panels)
    rows = [each["title"] for each in panels if each["type"] == "row"]
    assert rows == [
        "Backlog and throughput",
        "Retries",
        "Dead letters",
        "Latency",
        "Pool",
        "What is held up",
        "Broker and store",
    ]


def test_grafana_finds_it_by_its_label_and_gets_it_unchanged(production: Release, board: dict[str, Any]) -> None:
    made = production.one("ConfigMap", "-dashboard")
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(made["data"]["consumer.json"]) == board
