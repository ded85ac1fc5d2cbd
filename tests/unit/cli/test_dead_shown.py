"""What anybody may have written is shown, or left out, and never a reason to fail."""

import json
from typing import Any

import pytest

from consumer.cli.dead_shown import _parsed


@pytest.mark.parametrize("nonsense", [None, 5, "", "{", "5"])
def test_a_history_that_is_no_list_is_none(nonsense: Any) -> None:
    assert _parsed(nonsense) is None


def test_the_times_of_a_history_are_for_people_beside_whatever_else_is_in_it() -> None:
    forged = [1, {}, {"at": "x"}, {"at": 1e300}]
    history = [*forged, {"attempt": 1, "at": 1_700_000_000_000}]
    assert _parsed(json.dumps(history)) == [*forged, {"attempt": 1, "at": "2023-11-14T22:13:20.000+00:00"}]
