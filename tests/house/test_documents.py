"""What is written down in two places says the same in both."""

import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from schemas.codes import Code
from tests.house.files import text

PROJECT: dict[str, Any] = tomllib.loads(text("pyproject.toml"))
RUN = PROJECT["project"]["dependencies"]
TEST = RUN + PROJECT["project"]["optional-dependencies"]["test"]
BUILD = PROJECT["build-system"]["requires"]
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+).*\\\n +--hash=sha256:", re.MULTILINE)


def test_every_code_is_explained_to_producers() -> None:
    explained = text("docs/messages.md")
    assert [code for code in Code if f"`{code}`" not in explained] == []


def test_the_changelog_tells_of_this_version() -> None:
    assert f"## {PROJECT['project']['version']}" in text("CHANGELOG.md")


@pytest.mark.parametrize(("file", "wanted"), [("build", BUILD), ("run", RUN), ("test", TEST)])
def test_pinned_requirements_are_what_the_project_asks_for(file: str, wanted: list[str]) -> None:
    pins = {pin["name"]: pin["version"] for pin in PIN.finditer(text(f"requirements/{file}.txt"))}
    for requirement in map(Requirement, wanted):
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_gate_runs_on_the_versions_that_are_shipped() -> None:
    run, test = (
        {pin["name"]: pin["version"] for pin in PIN.finditer(text(f"requirements/{file}.txt"))}
        for file in ("run", "test")
    )
    assert run.items() <= test.items()


def test_every_dependency_has_its_reason_in_the_readme() -> None:
    section = re.search(r"^#+ Dependencies\n(.*?)(?=^#|\Z)", text("README.md"), re.MULTILINE | re.DOTALL)
    assert section, "README.md has no heading 'Dependencies'"
    rows = re.findall(r"^\|\s*\[?`?([\w-]+)`?[^|]*\|\s*(\S.*?)\|", section[1], re.MULTILINE)
    explained = {canonicalize_name(name) for name, reason in rows}
    assert {canonicalize_name(Requirement(requirement).name) for requirement in RUN} <= explained
