"""The alerts: what Prometheus itself says of their rules, and when each fires."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml

from tests.chart.exported import complaints, exported
from tests.chart.rendering import CHART, ROOT, Release, render

RUNBOOKS = ROOT / "docs" / "runbooks"
CASES = yaml.safe_load((Path(__file__).parent / "alerts.yaml").read_text(encoding="utf-8"))
TARGET = {"namespace": "prod", "job": "consumer"}

Rule = dict[str, Any]


@pytest.fixture(scope="session")
def release(chart: helm_python.Chart) -> Release:
    return render(chart, {"rules": {"enabled": True}})


@pytest.fixture(scope="session")
def rules(release: Release) -> list[Rule]:
    groups = release.one("PrometheusRule")["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="session")
def rule_file(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(yaml.safe_dump(release.one("PrometheusRule")["spec"]), encoding="utf-8")
    return path


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)


@dataclass(frozen=True)
class Case:
    alert: str
    when: str
    series: dict[str, str]
    at: str
    fires: list[dict[str, str]]
    not_yet: str | None = None


ALL = [Case(alert, **case) for alert, cases in CASES.items() for case in cases]


def on_target(series: str) -> str:
    """A series as Prometheus stores it: with the labels of the target that it was read from."""
    return series.replace("{", '{namespace="prod",job="consumer",', 1)


def sample(name: str, labels: dict[str, str]) -> str:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{inside}}}"


def expectation(case: Case, at: str, fires: list[dict[str, str]], severity: str) -> dict[str, Any]:
    own = {"alertname": case.alert, "alertstate": "firing", "severity": severity}
    firing = [sample("ALERTS", TARGET | own | more) for more in fires]
    return {
        "expr": f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}',
        "eval_time": at,
        "exp_samples": [{"labels": each, "value": 1} for each in firing],
    }


def test_prometheus_takes_the_rules(rule_file: Path) -> None:
    checked = promtool("check", "rules", rule_file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    "case",
    ALL,
    ids=lambda case: f"{case.alert} {'fires' if case.fires else 'is quiet'} when {case.when}",
)
def test_an_alert(case: Case, rules: list[Rule], rule_file: Path, tmp_path: Path) -> None:
    (rule,) = [each for each in rules if each["alert"] == case.alert]
    severity = rule["labels"]["severity"]
    expected = [expectation(case, case.at, case.fires, severity)]
    if case.not_yet:
        expected.append(expectation(case, case.not_yet, [], severity))
    test = {
        "interval": "1m",
        "input_series": [{"series": on_target(name), "values": text} for name, text in case.series.items()],
        "promql_expr_test": expected,
    }
    path = tmp_path / "test.yaml"
    path.write_text(
        yaml.safe_dump({"rule_files": [str(rule_file)], "evaluation_interval": "1m", "tests": [test]}),
        encoding="utf-8",
    )
    outcome = promtool("test", "rules", path)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_every_alert_is_shown_firing_and_shown_quiet(rules: list[Rule]) -> None:
    names = {rule["alert"] for rule in rules}
    assert {case.alert for case in ALL if case.fires} == names
    assert {case.alert for case in ALL if not case.fires} == names


def test_every_alert_has_a_runbook_and_every_runbook_an_alert(rules: list[Rule]) -> None:
    pages = {page.name for page in RUNBOOKS.glob("*.md")} - {"README.md"}
    assert {f"{rule['alert']}.md" for rule in rules} == pages
    for rule in rules:
        assert (ROOT / rule["annotations"]["runbook_url"]).is_file()


def test_every_runbook_names_the_severity_and_the_thresholds_of_its_alert(
    chart: helm_python.Chart, rules: list[Rule]
) -> None:
    thresholds = chart.values["rules"]["thresholds"]
    raw = yaml.safe_load((CHART / "rules" / "alerts.yaml").read_text(encoding="utf-8"))
    written = {rule["alert"]: str(rule) for group in raw["groups"] for rule in group["rules"]}
    for rule in rules:
        page = (RUNBOOKS / f"{rule['alert']}.md").read_text(encoding="utf-8")
        assert f"Severity: {rule['labels']['severity']}." in page
        used = {name for name in thresholds if f"${{{name}}}" in written[rule["alert"]]}
        assert set(re.findall(r"rules\.thresholds\.(\w+)", page)) == used


def test_the_list_of_runbooks_is_complete() -> None:
    index = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in RUNBOOKS.glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\((Consumer\w+\.md)\)", index)) == pages


def test_links_begin_with_the_base_that_the_values_give(production: Release) -> None:
    for group in production.one("PrometheusRule")["spec"]["groups"]:
        for rule in group["rules"]:
            expected = f"https://example.com/consumer/docs/runbooks/{rule['alert']}.md"
            assert rule["annotations"]["runbook_url"] == expected


def test_alerts_ask_only_for_what_the_daemon_exports(rules: list[Rule]) -> None:
    series = exported()
    assert [text for rule in rules for text in complaints(rule["expr"], series)] == []


def test_the_cases_feed_only_what_the_daemon_exports() -> None:
    series = exported()
    assert [text for case in ALL for name in case.series for text in complaints(name, series)] == []


def test_the_cases_are_written_as_text_and_not_as_numbers() -> None:
    assert all(isinstance(samples, str) for case in ALL for samples in case.series.values())


def test_alerts_are_about_this_release_only(rules: list[Rule]) -> None:
    for rule in rules:
        selectors = re.findall(r"\w+\{([^}]*)\}", rule["expr"])
        assert selectors
        assert all(each.startswith('namespace="prod",job="consumer"') for each in selectors)


def test_every_threshold_of_the_values_is_used_and_none_is_left_open(
    chart: helm_python.Chart, rules: list[Rule]
) -> None:
    text = (CHART / "rules" / "alerts.yaml").read_text(encoding="utf-8")
    used = set(re.findall(r"\$\{(\w+)\}", text)) - {"name", "selector", "runbooks"}
    assert used == set(chart.values["rules"]["thresholds"])
    assert "${" not in repr(rules)


def test_a_threshold_from_the_values_arrives_in_its_rule(production: Release) -> None:
    groups = production.one("PrometheusRule")["spec"]["groups"]
    by_name = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    assert "> 50000" in by_name["ConsumerBacklogGrowing"]["expr"]
    assert by_name["ConsumerStalled"]["for"] == "20m"
    assert "20m" in by_name["ConsumerStalled"]["annotations"]["description"]
