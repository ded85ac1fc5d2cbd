"""What anybody may have written is shown, or left out, and never a reason to fail."""

import json
from typing import Any

import pytest

from consumer.cli.dead_shown import _parsed, table


@pytest.mark.parametrize("nonsense", [None, 5, "", "{", "5"])
def test_a_history_that_is_no_list_is_none(nonsense: Any) -> None:
    assert _parsed(nonsense) is None


def test_the_times_of_a_history_are_for_people_beside_whatever_else_is_in_it() -> None:
    forged = [1, {}, {"at": "x"}, {"at": 1e300}]
    history = [*forged, {"attempt": 1, "at": 1_700_000_000_000}]
    assert _parsed(json.dumps(history)) == [*forged, {"attempt": 1, "at": "2023-11-14T22:13:20.000+00:00"}]


def test_columns_stand_under_each_other_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"key": key, "id": "1d"} for key in ("plain", "日本🙂", "e\u0301te\u0301", "a\tb", "new\nline")]
    table(rows, {"key": "KEY", "id": "ID"})
    assert capsys.readouterr().out.splitlines() == [
        "KEY       ID",
        "plain     1d",
        "日本🙂    1d",
        "e\u0301te\u0301       1d",
        "a b       1d",
        "new line  1d",
    ]
