"""Values that can't work are refused before anything is installed."""

import json
from collections.abc import Iterator
from typing import Any

import helm_python
import pytest

from tests.chart.rendering import CHART, Values, render

TRIAL: Values = {
    "broker": {"url": "amqp://user:pa55@host"},
    "store": {"url": "postgresql://user:pa55@host/jobs"},
}


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"replica": 1}, "replica"),
        ({"image": {"name": "x"}}, "name"),
        ({"rules": {"thresholds": {"retryRate": 0.5}}}, "retryRate"),
        ({"replicas": "two"}, "/replicas"),
        ({"replicas": -1}, "/replicas"),
        ({"drainSeconds": 1.5}, "/drainSeconds"),
        ({"terminationGracePeriodSeconds": "30s"}, "/terminationGracePeriodSeconds"),
        ({"image": {"repository": ""}}, "/image/repository"),
        ({"image": {"pullPolicy": "Sometimes"}}, "/image/pullPolicy"),
        ({"broker": {"url": 5672}}, "/broker/url"),
        ({"store": {"sqlite": "yes"}}, "/store/sqlite"),
        ({"config": "queue = 'x'"}, "/config"),
        ({"config": {"http": {"port": 80}}}, "/config/http/port"),
        ({"config": {"pool": {"processes": 0}}}, "/config/pool/processes"),
        ({"config": {"pool": {"io_processes": "1"}}}, "/config/pool/io_processes"),
        ({"config": {"pool": {"memory_limit": "1Gi"}}}, "/config/pool/memory_limit"),
        ({"config": {"broker": {"ack_timeout_seconds": "30m"}}}, "/config/broker/ack_timeout_seconds"),
        ({"resources": {"limits": {"memory": "1G"}}}, "/resources/limits/memory"),
        ({"podLabels": {"a": 1}}, "/podLabels/a"),
        ({"extraEnv": [{"value": "no name"}]}, "/extraEnv/0"),
        ({"extraEnv": {"A": "b"}}, "/extraEnv"),
        ({"podMonitor": {"interval": "often"}}, "/podMonitor/interval"),
        ({"rules": {"enabled": "true"}}, "/rules/enabled"),
        ({"rules": {"thresholds": {"downFor": 5}}}, "/rules/thresholds/downFor"),
        ({"rules": {"thresholds": {"retryRatio": 20}}}, "/rules/thresholds/retryRatio"),
        ({"rules": {"thresholds": {"stuckJobSeconds": "25m"}}}, "/rules/thresholds/stuckJobSeconds"),
        ({"rules": {"thresholds": {"kindCoolingFor": 600}}}, "/rules/thresholds/kindCoolingFor"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_name(chart: helm_python.Chart, values: Values, where: str) -> None:
    with pytest.raises(helm_python.HelmValuesError) as refusal:
        render(chart, values)
    assert where in str(refusal.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"drainSeconds": 60, "terminationGracePeriodSeconds": 69},
            "terminationGracePeriodSeconds is 69, but drainSeconds is 60.*Set it to 70 or more",
        ),
        ({"broker": TRIAL["broker"]}, "Only one of broker.url and store.url is given"),
        ({"store": TRIAL["store"]}, "Only one of broker.url and store.url is given"),
        (
            TRIAL | {"broker": {"url": "http://u:pa55@h"}},
            "broker.url begins with neither amqp:// nor amqps://",
        ),
        (
            TRIAL | {"store": {"url": "mysql://u:pa55@h"}},
            "store.url begins with neither postgresql:// nor sqlite:///",
        ),
        ({"existingSecret": ""}, "The broker and the store are unknown.*existingSecret"),
        (
            TRIAL | {"store": {"url": "sqlite:///jobs.db"}},
            "replicas is 2, but the store is SQLite.*Set replicas to 1",
        ),
        ({"store": {"sqlite": True}}, "replicas is 2, but the store is SQLite"),
        ({"config": {"broker": {"url": "amqp://u:pa55@h"}}}, "config holds broker.url or store.url"),
        ({"config": {"store": {"url": "postgresql://u:pa55@h"}}}, "config holds broker.url or store.url"),
        ({"config": {"shutdown": {"drain_seconds": 5}}}, "Use drainSeconds"),
        (
            {"resources": {"requests": {"memory": "256Mi"}}},
            "requests.memory is 256Mi.*limits.memory is 512Mi.*equal",
        ),
        ({"config": {"pool": {"processes": 4}}}, "less than 128Mi is left for each of 4 child processes"),
        (
            {"config": {"pool": {"processes": 2, "io_processes": 2}}},
            "less than 128Mi is left for each of 4 child processes",
        ),
        (
            {"config": {"pool": {"memory_limit": 384 * 1024**2 + 1}}},
            "memory_limit is 402653185 bytes, but resources.limits.memory is 512Mi.*Raise the one or lower the other",
        ),
        (
            {"rules": {"enabled": True}, "config": {"broker": {"ack_timeout_seconds": 900}}},
            "stuckJobSeconds is 1500, but config.broker.ack_timeout_seconds is 900.*Set it lower",
        ),
        (
            {"config": {"broker": {"user": "u", "password": "pa55"}}},
            "config holds broker.password.*config.broker.password_file",
        ),
    ],
    ids=str,
)
def test_values_that_contradict_each_other_are_refused_in_one_sentence(
    chart: helm_python.Chart, values: Values, sentence: str
) -> None:
    with pytest.raises(helm_python.HelmRenderError, match=sentence) as refusal:
        render(chart, values)
    assert "pa55" not in str(refusal.value)


def test_the_least_grace_and_the_most_children_are_taken(chart: helm_python.Chart) -> None:
    values = {"drainSeconds": 60, "terminationGracePeriodSeconds": 70, "config": {"pool": {"processes": 3}}}
    assert render(chart, values).pod["terminationGracePeriodSeconds"] == 70


OPEN = {
    "config",  # the daemon refuses unknown settings itself
    "config.broker",
    "config.http",
    "config.pool",
    "global",  # Helm's own
    "podSecurityContext",  # Kubernetes' own, checked by the API server
    "securityContext",
    "affinity",
    "imagePullSecrets[]",
    "tolerations[]",
    "extraEnv[].valueFrom",
    "extraVolumes[]",
    "extraVolumeMounts[]",
    "extraObjects[]",
}


def open_objects(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    if schema.get("type") == "object" and "additionalProperties" not in schema:
        yield path
    for name, child in schema.get("properties", {}).items():
        yield from open_objects(child, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from open_objects(schema["items"], f"{path}[]")


def test_every_group_of_ours_is_closed_to_unknown_keys() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert set(open_objects(schema)) <= OPEN


def test_the_schema_knows_every_value_that_the_chart_has(chart: helm_python.Chart) -> None:
    schema = chart.schema
    assert schema is not None
    assert set(schema["properties"]) - {"global"} == set(chart.values)
    assert set(schema["properties"]["rules"]["properties"]["thresholds"]["properties"]) == set(
        chart.values["rules"]["thresholds"]
    )
