"""The Dockerfile, as far as it can be judged without a container engine to build it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chart.rendering import ROOT, Release

DOCKERFILE = ROOT / "Dockerfile"


@pytest.fixture(scope="module")
def final_stage() -> list[tuple[str, str]]:
    """Instructions and arguments after the last FROM."""
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    pairs = [(instruction, argument) for instruction, argument in lines]
    start = max(number for number, (instruction, _) in enumerate(pairs) if instruction == "FROM")
    return pairs[start:]


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    judged = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout


def test_the_daemon_itself_is_process_one(final_stage: list[tuple[str, str]]) -> None:
    stage = dict(final_stage)
    assert json.loads(stage["ENTRYPOINT"]) == ["consumer"]
    assert json.loads(stage["CMD"]) == ["run"]
    assert stage["STOPSIGNAL"] == "SIGTERM"


def test_it_runs_as_the_number_that_the_chart_asks_for(final_stage: list[tuple[str, str]], default: Release) -> None:
    context = default.pod["securityContext"]
    assert dict(final_stage)["USER"] == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_its_port_is_the_one_that_the_chart_asks(final_stage: list[tuple[str, str]], default: Release) -> None:
    (port,) = default.container["ports"]
    assert dict(final_stage)["EXPOSE"] == str(port["containerPort"])


def test_whatever_comes_from_elsewhere_comes_by_its_hash() -> None:
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    installs = re.findall(r"\bpip (?:install|wheel) ([^&\n]+)", text)
    assert installs
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)


def test_what_is_pinned_is_pinned_by_hash() -> None:
    for name in ("build.txt", "run.txt"):
        text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        pins = re.findall(r"^[a-z].*==", text, re.MULTILINE)
        assert pins
        assert text.count("--hash=sha256:") >= len(pins)


def test_all_that_is_copied_from_here_is_let_through_and_nothing_else() -> None:
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
        for source in line.split()[:-1]
    }
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignore
    assert {line.removeprefix("!") for line in ignore if line.startswith("!")} == copied
