"""What the daemon's objects promise: it stops in time, keeps secrets apart, and asks for little."""

import copy
from pathlib import Path
from typing import Any

import helm_python
import pytest

from config.settings import load
from tests.chart.rendering import EXAMPLES, Release, example, render

OURS = {
    "CONSUMER_CONFIG",
    "CONSUMER_SHUTDOWN__DRAIN_SECONDS",
    "CONSUMER_BROKER__URL",
    "CONSUMER_STORE__URL",
}


def environment(release: Release) -> dict[str, Any]:
    return {each["name"]: each.get("value") or each["valueFrom"] for each in release.container["env"]}


def test_kubernetes_waits_ten_seconds_longer_than_the_drain(chart: helm_python.Chart) -> None:
    release = render(chart, {"drainSeconds": 300})
    assert environment(release)["CONSUMER_SHUTDOWN__DRAIN_SECONDS"] == "300"
    assert release.pod["terminationGracePeriodSeconds"] == 310


def test_a_longer_grace_period_is_kept(production: Release) -> None:
    assert production.pod["terminationGracePeriodSeconds"] == 330


def test_the_urls_come_from_the_named_secret(default: Release, production: Release) -> None:
    for release, name in ((default, "consumer"), (production, "thumbnails-urls")):
        env = environment(release)
        assert env["CONSUMER_BROKER__URL"] == {"secretKeyRef": {"name": name, "key": "broker-url"}}
        assert env["CONSUMER_STORE__URL"] == {"secretKeyRef": {"name": name, "key": "store-url"}}
        assert release.all("Secret") == []


def test_urls_given_for_a_trial_go_into_a_secret_and_nowhere_else(sqlite: Release) -> None:
    secret = sqlite.one("Secret")
    url = "amqp://guest:guest@rabbitmq:5672/"
    assert secret["stringData"]["broker-url"] == url
    assert environment(sqlite)["CONSUMER_BROKER__URL"]["secretKeyRef"]["name"] == secret["metadata"]["name"]
    others = [each for each in sqlite.objects if each["kind"] != "Secret"]
    assert url not in repr(others)
    assert url not in sqlite.notes


def test_the_chart_sets_only_settings_that_the_daemon_has(default: Release) -> None:
    assert set(environment(default)) == OURS
    assert default.settings == {
        "http": {"host": "0.0.0.0", "port": 8080},
        "pool": {"processes": 1},
    }


def test_the_settings_file_holds_what_the_values_say(production: Release) -> None:
    assert production.settings == {
        "queue": "thumbnails",
        "namespace": "media",
        "http": {"host": "0.0.0.0", "port": 8080},
        "jobs": {"modules": ["thumbnails.jobs"], "path": "/opt/thumbnails"},
        "log": {"level": "info"},
        "broker": {"management_url": "https://rabbitmq.example.com:15671", "ack_timeout_seconds": 3600},
        "topology": {"version": 2, "delivery_limit": 200},
        "kinds": {
            "thumbnails.render": {
                "timeout_seconds": 2700,
                "max_attempts": 8,
                "retry_on": ["EncoderBusy"],
                "failure_ratio": 0.5,
            }
        },
        "cooldown": {"longest_seconds": 600},
        "dead_letters": {"breaker_ratio": 0.8, "breaker_least": 500},
        "pool": {
            "processes": 4,
            "io_processes": 1,
            "io_concurrency": 200,
            "memory_limit": 1_500_000_000,
            "recycle_jobs": 10_000,
        },
    }


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def test_the_daemon_takes_what_the_chart_gives_it(
    chart: helm_python.Chart, values: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = render(chart, example(values) if values else None)
    file = tmp_path / "consumer.toml"
    file.write_text(release.settings_text, encoding="utf-8")
    given = environment(release)
    monkeypatch.setenv("CONSUMER_CONFIG", str(file))
    monkeypatch.setenv("CONSUMER_SHUTDOWN__DRAIN_SECONDS", given["CONSUMER_SHUTDOWN__DRAIN_SECONDS"])
    monkeypatch.setenv("CONSUMER_BROKER__URL", "amqps://user:password@host/vhost")
    monkeypatch.setenv("CONSUMER_STORE__URL", "postgresql://user:password@host/database")
    settings = load()
    assert settings.http.host == "0.0.0.0"
    assert settings.pool.processes >= 1
    assert release.pod["terminationGracePeriodSeconds"] >= settings.shutdown.drain_seconds + 10
    (port,) = release.container["ports"]
    assert port["containerPort"] == settings.http.port


@pytest.mark.parametrize(
    "awkward",
    [
        'a "quoted" \\ word',
        "ünïcode\nand <lines> & more",
        "",
        0,
        7,
        10**12,
        0.25,
        True,
        False,
        [],
        ["a", "b"],
        [1, 2],
    ],
)
def test_any_setting_comes_back_from_toml_as_it_was(chart: helm_python.Chart, awkward: object) -> None:
    release = render(chart, {"config": {"top": awkward, "a table": {"deep.er": {"value": awkward}}}})
    assert release.settings["top"] == awkward
    assert release.settings["a table"]["deep.er"]["value"] == awkward


@pytest.mark.parametrize("limit", [-1, 64 * 1024**2, 384 * 1024**2])
def test_the_memory_of_children_is_the_daemons_to_reckon_unless_the_values_say(
    chart: helm_python.Chart, default: Release, limit: int
) -> None:
    assert "memory_limit" not in default.settings["pool"]
    many = {"pool": {"processes": 16, "memory_limit": limit}}
    assert render(chart, {"config": many}).settings["pool"]["memory_limit"] == limit


def test_the_settings_file_is_mounted_where_the_daemon_looks(default: Release) -> None:
    mounts = {each["name"]: each for each in default.container["volumeMounts"]}
    assert environment(default)["CONSUMER_CONFIG"] == f"{mounts['config']['mountPath']}/consumer.toml"
    assert mounts["config"]["readOnly"]


def test_a_changed_setting_or_url_restarts_the_pods(chart: helm_python.Chart) -> None:
    trial = {"replicas": 1, "broker": {"url": "amqp://a"}, "store": {"url": "sqlite:///a"}}
    changes: list[dict[str, Any]] = [
        trial,
        trial | {"broker": {"url": "amqp://b"}},
        trial | {"config": {"queue": "other"}},
    ]
    templates = [render(chart, values).one("Deployment")["spec"]["template"]["metadata"] for values in changes]
    checksums = {repr(sorted(each["annotations"].items())) for each in templates}
    assert len(checksums) == len(changes)


def test_probes_ask_the_port_that_the_settings_open(chart: helm_python.Chart) -> None:
    release = render(chart, {"config": {"http": {"port": 9000}}})
    assert release.settings["http"]["port"] == 9000
    assert release.container["ports"] == [{"name": "http", "containerPort": 9000, "protocol": "TCP"}]
    asked = {name: release.container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert asked == {
        "startup": {"path": "/livez", "port": "http"},
        "liveness": {"path": "/livez", "port": "http"},
        "readiness": {"path": "/readyz", "port": "http"},
    }


def test_a_roll_out_never_takes_a_pod_away_first(default: Release) -> None:
    strategy = default.one("Deployment")["spec"]["strategy"]
    assert strategy["type"] == "RollingUpdate"
    assert strategy["rollingUpdate"]["maxUnavailable"] == 0


def test_two_pods_never_open_one_sqlite_file(sqlite: Release, chart: helm_python.Chart) -> None:
    named = render(chart, {"replicas": 1, "store": {"sqlite": True}})
    for release in (sqlite, named):
        assert release.one("Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_a_pod_that_is_not_ready_does_not_hold_up_a_node(default: Release) -> None:
    spec = default.one("PodDisruptionBudget")["spec"]
    assert spec["maxUnavailable"] == 1
    assert spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_every_selector_finds_the_daemons_pods_and_not_the_test_pod(production: Release) -> None:
    deployment = production.one("Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"].items()
    test_labels = production.one("Pod")["metadata"]["labels"].items()
    selectors = [
        deployment["selector"]["matchLabels"],
        production.one("Service")["spec"]["selector"],
        production.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        production.one("PodMonitor")["spec"]["selector"]["matchLabels"],
        *(each["labelSelector"]["matchLabels"] for each in production.pod["topologySpreadConstraints"]),
    ]
    for selector in selectors:
        assert selector.items() <= labels
        assert not selector.items() <= test_labels


@pytest.mark.parametrize("kind", ["Deployment", "Pod"])
def test_no_container_has_more_rights_than_it_needs(default: Release, kind: str) -> None:
    made = default.one(kind)["spec"]
    pod = made["template"]["spec"] if kind == "Deployment" else made
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_only_tmp_can_be_written(default: Release) -> None:
    writable = [each["mountPath"] for each in default.container["volumeMounts"] if not each.get("readOnly")]
    assert writable == ["/tmp"]
    assert {"name": "tmp", "emptyDir": {}} in default.pod["volumes"]


def test_memory_is_limited_to_what_was_asked_for_and_cpu_is_not(default: Release) -> None:
    resources = copy.deepcopy(default.container["resources"])
    assert resources["limits"] == {"memory": resources["requests"]["memory"]}
    assert resources["requests"]["cpu"]


def test_extra_things_arrive_in_their_places(production: Release, sqlite: Release) -> None:
    assert environment(production)["THUMBNAILS_BUCKET"] == "originals"
    assert "store" in [each["name"] for each in sqlite.pod["volumes"]]
    assert "/var/lib/consumer" in [each["mountPath"] for each in sqlite.container["volumeMounts"]]
    assert sqlite.one("PersistentVolumeClaim")["metadata"]["namespace"] == "prod"


def test_the_metrics_job_is_named_after_the_application(production: Release) -> None:
    spec = production.one("PodMonitor")["spec"]
    assert spec["jobLabel"] == "app.kubernetes.io/name"
    assert spec["podMetricsEndpoints"] == [{"port": "http", "path": "/metrics", "interval": "30s"}]


def test_the_helm_test_asks_whether_the_daemon_is_ready(default: Release) -> None:
    pod = default.one("Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    url = pod["spec"]["containers"][0]["command"][-1]
    service = default.one("Service")
    assert url == f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}/readyz"


def test_the_notes_say_how_to_make_the_missing_secret(default: Release, sqlite: Release) -> None:
    assert "create secret generic consumer" in default.notes
    assert "create secret" not in sqlite.notes
    assert "volume" in sqlite.notes
