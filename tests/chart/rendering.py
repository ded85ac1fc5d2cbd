"""Renders the chart as Helm does, and lets tests ask for what came out."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import helm_python
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm"
EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))

Values = dict[str, Any]
Object = dict[str, Any]


@dataclass(frozen=True)
class Release:
    objects: list[Object]
    notes: str

    def all(self, kind: str) -> list[Object]:
        return [each for each in self.objects if each["kind"] == kind]

    def one(self, kind: str, name_ends: str = "") -> Object:
        (found,) = [each for each in self.all(kind) if each["metadata"]["name"].endswith(name_ends)]
        return found

    @property
    def pod(self) -> Object:
        """What the Deployment runs."""
        spec: Object = self.one("Deployment")["spec"]["template"]["spec"]
        return spec

    @property
    def container(self) -> Object:
        (container,) = self.pod["containers"]
        return dict(container)

    @property
    def settings_text(self) -> str:
        maps = [each["data"] for each in self.all("ConfigMap")]
        (text,) = [data["consumer.toml"] for data in maps if "consumer.toml" in data]
        return str(text)

    @property
    def settings(self) -> Object:
        return tomllib.loads(self.settings_text)


def example(path: Path) -> Values:
    values: Values = yaml.safe_load(path.read_text(encoding="utf-8"))
    return values


def render(chart: helm_python.Chart, values: Values | None = None) -> Release:
    texts = chart.render(values or {}, name="demo", namespace="prod")
    notes = texts.pop("consumer/templates/NOTES.txt")
    documents = [each for text in texts.values() for each in yaml.safe_load_all(text)]
    return Release([each for each in documents if each], notes)
