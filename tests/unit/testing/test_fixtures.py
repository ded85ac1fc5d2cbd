"""The page for users, as they would try it: its files in an empty folder, and pytest."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text("utf-8")
FILES: dict[str, str] = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
TALKATIVE = {"CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "PYTEST_THEME", "FORCE_COLOR", "PY_COLORS"}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    for name, source in FILES.items():
        (tmp_path / name).write_text(source)
    return tmp_path


def pytest_said(folder: Path, *arguments: str) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--disable-plugin-autoload",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        *arguments,
    ]
    # pytest says more where it finds itself in a CI (CI, BUILD_NUMBER), or is told to (PYTEST_ADDOPTS): what a user
    # sees on a terminal of their own is what is looked at here, wherever these tests run.
    plain = {name: value for name, value in os.environ.items() if name not in TALKATIVE}
    return subprocess.run(
        command, cwd=folder, env=plain, capture_output=True, text=True, timeout=60, check=False
    ).stdout


def test_every_example_on_the_page_for_users_passes(shop: Path) -> None:
    assert PAGE.count("```python") == len(FILES)
    said = pytest_said(shop)
    tests = sum(source.count("def test_") for source in FILES.values())
    assert f"{tests} passed" in said, said


def test_an_expectation_that_is_broken_shows_what_happened_and_where(shop: Path) -> None:
    (shop / "test_broken.py").write_text(BROKEN)
    said = pytest_said(shop, "test_broken.py")
    assert said.count(f"AssertionError: expected succeeded, but {STORY}") == 1, said
    assert said.count(f"AssertionError: assert 'retry' == 'succeeded'\nE         {STORY}") == 1, said
    assert "raise ConnectionError('no answer from the bank')" in said
    assert "outcome.py" not in said, "the place is the test's own line"


BROKEN = """
import shop
from consumer.testing import run

def no_answer(key, cents):
    raise ConnectionError('no answer from the bank')

def test_expect(monkeypatch):
    monkeypatch.setattr(shop.bank, "charge", no_answer)
    run(shop.charge, {"number": 7, "cents": 1}).expect("succeeded")

def test_assert(monkeypatch):
    monkeypatch.setattr(shop.bank, "charge", no_answer)
    assert run(shop.charge, {"number": 7, "cents": 1}).status == "succeeded"
"""
STORY = "attempt 1 of order.charge 'test' failed, and is retried in 7.5 s: ConnectionError: no answer from the bank"
