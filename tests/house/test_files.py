"""Rules about files: their size, their place, and what may not be written in them."""

import ast
import re
from pathlib import Path

import pytest

from tests.house.files import calls, is_under, ours, text
from tests.support.leash import ROOT

MOST_LINES = 300
SOURCE_OF = {"schemas": "schemas", "config": "config"}
FORBIDDEN = re.compile(
    r"""
      \bpypi[.]org | python[h]osted | \b(extra-)?index-url\ ?[=:\ ]\ ?\S*//   # where packages come from
    | (?<![\w.}])/(work|root|home/\w+|opt/pypi|opt/wheels)/                  # this machine
    | (?<![\w.}])/tmp/\w
    """,
    re.VERBOSE,
)
SLASH = "/"
SLEEPERS = ("tests/support/waiting.py", "tests/support/jobs", "tests/acceptance/test_stopping.py")
"""Where seconds are the subject: waiting itself, jobs that take long, and signals that come after so many ms."""


def test_a_module_fits_in_the_head() -> None:
    lines = {path: text(path).count("\n") for path in ours("*.py")}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_a_unit_test_mirrors_the_module_that_it_tests() -> None:
    tests = [Path(path).relative_to("tests/unit") for path in ours("tests/unit/*test_*.py")]
    sources = {test: source_of(test) for test in tests}
    assert {str(test): source for test, source in sources.items() if not is_there(source)} == {}


def is_there(source: str) -> bool:
    """A module, or a package of that name."""
    return (ROOT / source).exists() or (ROOT / source.removesuffix(".py")).is_dir()


def source_of(test: Path) -> str:
    name = test.name.removeprefix("test_")
    ours_elsewhere = test.parts[0] in SOURCE_OF
    return str(test.with_name(name) if ours_elsewhere else "consumer" / test.with_name(name))


def test_no_file_names_a_registry_or_a_path_of_one_machine() -> None:
    found = [
        f"{path}:{number} {line.strip()[:100]}"
        for path in ours()
        for number, line in enumerate((ROOT / path).read_text(errors="replace").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        f"see https:{SLASH}{SLASH}pypi.{'org'}/simple",
        f"--index-url https:{SLASH}{SLASH}mirror/simple",
        f"cd {SLASH}work/main",
        f"open('{SLASH}tmp/x')",
        f"{SLASH}home/someone/x",
    ],
)
def test_a_registry_or_a_path_of_one_machine_would_be_found(line: str) -> None:
    assert FORBIDDEN.search(line)


def test_tests_wait_for_signals_and_not_for_seconds() -> None:
    found = [
        f"{path}:{call.lineno}"
        for path in ours("tests/**.py")
        if not is_under(path, *SLEEPERS)
        for call in calls(path)
        if sleeps(call)
    ]
    assert found == []


def sleeps(call: ast.Call) -> bool:
    """Tell `time.sleep(1)`, but not `asyncio.sleep(0)`, which only lets others go first."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    yields = any(isinstance(argument, ast.Constant) and argument.value == 0 for argument in call.args[:1])
    return name == "sleep" and not yields
