"""Whoever is woken at night types what the runbooks say."""

import re
import shlex
from collections.abc import Iterator

import pytest
import typer

from consumer.cli.commands import app_with
from tests.chart.rendering import ROOT


def commands() -> Iterator[str]:
    """What stands in backquotes and begins with `consumer`, without shell redirections."""
    for page in sorted((ROOT / "docs" / "runbooks").glob("*.md")):
        for span in re.findall(r"`([^`]+)`", page.read_text(encoding="utf-8")):
            if found := re.fullmatch(r"(?:kubectl exec .* -- )?consumer ([^<>]+)(?:[<>].*)?", span):
                yield found[1].strip()


COMMANDS = sorted({*commands()})


def parse(line: str) -> None:
    """As the command would, up to where it begins to work; raises for what it doesn't know."""
    command, words = typer.main.get_command(app_with(None)), shlex.split(line)
    while names := getattr(command, "commands", None):
        command = names[words.pop(0)]
    command.make_context("consumer", words)


def test_the_runbooks_name_commands() -> None:
    assert "dead redrive --group GROUP --canary 5" in COMMANDS


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_in_a_runbook_is_one_that_there_is(line: str) -> None:
    parse(line)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("dead resend", "resend"),
        ("dead redrive --canaries 5", "No such option: --canaries"),
        ("dead redrive --canary few", "valid integer"),
        ("status KIND", "Missing parameter: key"),
    ],
)
def test_one_that_there_is_not_is_found(line: str, found: str) -> None:
    with pytest.raises(Exception, match=found):
        parse(line)
