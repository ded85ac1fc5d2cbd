"""Every object that the chart makes is one that the API server would take."""

import copy
import json
from pathlib import Path

import helm_python
import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from tests.chart.rendering import CHART, EXAMPLES, Object, Release, example, render

KUBERNETES = ("1.29", kubernetes_validate.latest_version())
SCHEMAS = Path(__file__).parent / "schemas"
WARNING = 2


@pytest.fixture(scope="session", params=[None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def release(request: pytest.FixtureRequest, chart: helm_python.Chart) -> Release:
    return render(chart, example(request.param) if request.param else None)


def is_core(each: Object) -> bool:
    return str(each["apiVersion"]) != "monitoring.coreos.com/v1"


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_knows_every_field_of_every_object(release: Release, version: str) -> None:
    for each in filter(is_core, release.objects):
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("version", KUBERNETES)
def test_a_misspelt_field_deep_in_an_object_is_found(default: Release, version: str) -> None:
    deployment = copy.deepcopy(default.one("Deployment"))
    deployment["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinesProbe"):
        kubernetes_validate.validate(deployment, version, strict=True)


@pytest.mark.parametrize("kind", ["PodMonitor", "PrometheusRule"])
def test_the_prometheus_operator_knows_every_field(production: Release, kind: str) -> None:
    schema = json.loads((SCHEMAS / f"{kind}.json").read_text(encoding="utf-8"))
    jsonschema.validate(production.one(kind), schema)


@pytest.mark.parametrize("path", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def test_helm_finds_nothing_to_warn_of(path: Path | None) -> None:
    report = helm_python.lint(CHART, example(path) if path else None, strict=True)
    assert [each for each in report["messages"] if each["severity"] >= WARNING] == []
    assert report["errors"] == []


def test_no_two_objects_of_a_kind_share_a_name(release: Release) -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in release.objects]
    assert len(set(names)) == len(names)


def test_every_object_of_ours_says_what_it_belongs_to(default: Release) -> None:
    for each in default.objects:
        assert each["metadata"]["namespace"] == "prod"
        assert (
            each["metadata"]["labels"].items()
            >= {
                "app.kubernetes.io/name": "consumer",
                "app.kubernetes.io/instance": "demo",
                "app.kubernetes.io/managed-by": "Helm",
            }.items()
        )


def test_what_needs_the_prometheus_operator_or_grafana_is_off_by_default(default: Release) -> None:
    kinds = {each["kind"] for each in default.objects}
    assert kinds == {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget", "Pod"}
    assert len(default.all("ConfigMap")) == 1
