"""How sessions that end soon are told from those that lasted, and how long to wait after them."""

import pytest

from consumer.core.streak import ALIKE, LASTING, LOST, REFUSED, Streak

REFUSALS = frozenset({"channel_closed"})


def streak() -> Streak:
    return Streak(REFUSALS, lambda: 0.999999)


def waits(reason: str, count: int) -> list[float]:
    one = streak()
    found = []
    for _ in range(count):
        one.ended(reason, "why", 0.1)
        found.append(round(one.wait(), 3))
    return found


def test_each_brief_session_makes_the_wait_longer_up_to_a_cap() -> None:
    assert waits("closed", 6) == [0.2, 0.4, 0.8, 1.6, LOST.cap, LOST.cap]
    assert waits("channel_closed", 9)[-2:] == [25.6, REFUSED.cap]


def test_a_broker_that_is_back_is_in_use_again_within_five_seconds() -> None:
    assert max(waits("closed", 100)) <= 3.0


def test_a_session_that_lasted_makes_the_next_wait_short_again() -> None:
    one = streak()
    for _ in range(10):
        one.ended("closed", "why", 0.1)
    one.ended("closed", "why", LASTING)
    assert one.wait() < LOST.base + 0.001
    assert not one.is_a_pattern


def test_sessions_that_end_alike_become_a_pattern_once() -> None:
    one = streak()
    seen = []
    for _ in range(ALIKE + 2):
        one.ended("undecodable", "why", 0.1)
        seen.append((one.becomes_a_pattern, one.is_a_pattern))
    assert seen == [(False, False)] * (ALIKE - 1) + [(True, True), (False, True), (False, True)]


@pytest.mark.parametrize("other", [("closed", "why"), ("undecodable", "another")])
def test_another_ending_breaks_a_pattern(other: tuple[str, str]) -> None:
    one = streak()
    for _ in range(ALIKE):
        one.ended("undecodable", "why", 0.1)
    one.ended(*other, 0.1)
    assert not one.is_a_pattern
