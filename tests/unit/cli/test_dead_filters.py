"""Words on the command line become a filter, or one sentence and exit code 2."""

from inspect import signature
from typing import Any

import pytest
import typer

from config.settings import Settings
from consumer.cli.dead_filters import OPTIONS, Choice, filtered
from consumer.core.errors import SettingsError
from consumer.wiring import clock


def test_what_is_not_said_does_not_matter() -> None:
    wanted = Choice().wanted(Settings())
    assert (wanted.ids, wanted.code, wanted.since) == (None, None, None)
    assert str(Choice()) == "all"


def test_durations_count_back_from_now() -> None:
    since = Choice(since="2h").wanted(Settings()).since
    assert since is not None
    assert 7_200_000 <= clock() - since < 7_260_000
    assert Choice(until="2030-01-31T06:00Z").wanted(Settings()).until == 1_896_069_600_000


@pytest.mark.parametrize(
    ("choice", "wrong"),
    [
        (Choice(code="nonsense"), "there is no code 'nonsense'"),
        (Choice(since="1h", until="2h"), "--since is not before --until"),
        (Choice(key="half \udcff"), "--key is not UTF-8"),
        (Choice(group="4e7d"), "--group '4e7d' can be none"),
        (Choice(kind=""), "--kind is empty"),
        (Choice(code="rejected", since=""), "--since is empty"),
    ],
)
def test_a_filter_that_no_letter_can_match_is_refused(
    choice: Choice, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as left:
        choice.wanted(Settings())
    assert left.value.exit_code == 2
    assert wrong in capsys.readouterr().err


@pytest.mark.parametrize("name", ["日本🙂", "right to left \u202e", "no\u00a0break", 'it\'s "quoted"'])
def test_a_name_that_a_message_may_have_can_be_asked_for(name: str) -> None:
    wanted = Choice(kind=name, key=name).wanted(Settings())
    assert (wanted.kind, wanted.key) == (name, name)


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match="--since 'yesterday'"):
        Choice(since="yesterday").wanted(Settings())


def test_a_command_gets_the_options_and_its_own_and_is_handed_a_choice() -> None:
    given: list[Any] = []

    @filtered
    def command(choice: Choice, limit: int = 5) -> None:
        given.append((choice, limit))

    assert [*signature(command).parameters] == [*OPTIONS, "limit"]
    command(**dict.fromkeys(OPTIONS), limit=7)
    assert given == [(Choice(), 7)]
