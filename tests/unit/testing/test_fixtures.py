"""The page for users, as they would try it: its files in an empty folder, and pytest."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "testing.md").read_text("utf-8")
FILES: dict[str, str] = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))


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
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False).stdout


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
