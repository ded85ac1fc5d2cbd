from collections.abc import Collection

import pytest

from consumer.worker.blame import FROM_INSIDE, FROM_OUTSIDE, NOBODY, Blame, Evidence, blame

ALL = frozenset({1, 2, 3})


def evidence(
    *, found: set[int] | None = None, seen: Collection[int] = (), killed: bool = False, alone: bool = False
) -> Evidence:
    begun = frozenset({1}) if alone else ALL
    return Evidence(begun, None if found is None else frozenset(found), frozenset(seen), killed, alone)


def guilty(*runs: int) -> Blame:
    return Blame(frozenset(runs))


@pytest.mark.parametrize(
    ("what", "verdict"),
    [
        (evidence(seen={2}), guilty(2)),
        (evidence(seen={2, 3}), Blame(NOBODY, frozenset({2, 3}), FROM_INSIDE)),
        (evidence(), Blame(NOBODY, ALL, FROM_INSIDE)),
        (evidence(alone=True), guilty(1)),
        (evidence(alone=True, seen={1}), guilty(1)),
        (evidence(killed=True), Blame(NOBODY, ALL, FROM_OUTSIDE)),
        (evidence(killed=True, seen={2}), Blame(NOBODY, frozenset({2}), FROM_INSIDE)),
        (evidence(killed=True, alone=True), Blame(NOBODY, frozenset({1}), FROM_OUTSIDE)),
        (evidence(found={2, 3}, killed=True), guilty(2, 3)),
        (evidence(found={2}, seen={3}, killed=True), guilty(2)),
        (evidence(found=set(), killed=True), Blame(NOBODY, ALL, FROM_INSIDE)),
        (evidence(found={9}, killed=True), Blame(NOBODY, ALL, FROM_INSIDE)),
    ],
)
def test_who_surely_ended_the_child_is_guilty_and_else_all_who_may_have_are_suspects(
    what: Evidence, verdict: Blame
) -> None:
    assert blame(what) == verdict
