"""The table of values is made from values.yaml."""

import runpy
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(CHART / "document.py"))


def test_the_table_of_values_is_current(script: dict[str, Any]) -> None:
    kept = (CHART / "README.md").read_text(encoding="utf-8")
    assert kept == script["readme"](), "Run: python helm/document.py"


def test_a_value_without_a_word_about_it_is_an_error(script: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"image\.tag in values\.yaml has no comment"):
        script["table"]("image:\n  # The name.\n  repository: a\n\n  tag: b\n")


def test_a_row_holds_the_comment_and_the_default(script: dict[str, Any]) -> None:
    table = script["table"]("a:\n  # One\n  # two.\n  b: {c: 1}\n")
    assert table.splitlines()[2] == '| `a.b` | One two. | `{"c": 1}` |'


def test_the_default_values_are_plain_yaml() -> None:
    assert isinstance(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), dict)
