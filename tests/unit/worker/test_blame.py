from collections.abc import Collection

import pytest

from consumer.worker.blame import NOBODY, Blame, Evidence, blame

ALL = frozenset({1, 2, 3})


def evidence(
    *, found: Collection[int] = (), seen: Collection[int] = (), outside: bool = False, alone: bool = False
) -> Evidence:
    begun = frozenset({1}) if alone else ALL
    return Evidence(begun, frozenset(found), frozenset(seen), perhaps_outside=outside, alone=alone)


def guilty(*runs: int) -> Blame:
    return Blame(frozenset(runs))


def suspects(*runs: int) -> Blame:
    return Blame(NOBODY, frozenset(runs))


@pytest.mark.parametrize(
    ("what", "verdict"),
    [
        (evidence(seen={2}), guilty(2)),
        (evidence(seen={2, 3}), suspects(2, 3)),
        (evidence(), suspects(1, 2, 3)),
        (evidence(alone=True), guilty(1)),
        (evidence(alone=True, seen={1}), guilty(1)),
        (evidence(outside=True), suspects(1, 2, 3)),
        (evidence(outside=True, seen={2}), suspects(1, 2, 3)),
        (evidence(outside=True, alone=True, seen={1}), suspects(1)),
        (evidence(found={2, 3}, outside=True), guilty(2, 3)),
        (evidence(found={2}, seen={3}), guilty(2)),
    ],
)
def test_who_surely_ended_the_child_is_guilty_and_else_all_who_may_have_are_suspects(
    what: Evidence, verdict: Blame
) -> None:
    assert blame(what) == verdict


@pytest.mark.parametrize(
    ("what", "verdict"),
    [
        (evidence(found={9}), guilty()),
        (evidence(seen={9}), guilty()),
        (evidence(seen={9, 2}), suspects(2)),
    ],
)
def test_what_a_run_that_is_over_left_behind_is_not_charged_to_those_that_came_after_it(
    what: Evidence, verdict: Blame
) -> None:
    assert blame(what) == verdict
