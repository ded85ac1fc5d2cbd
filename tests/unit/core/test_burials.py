"""When to stop burying jobs, and how that ends."""

import pytest

from consumer.core.burials import BurialRules, DeadLetterBreaker
from consumer.core.disposition import Complete, DeadLetter, Defer, Release
from consumer.core.job import Fault
from consumer.core.outcome import Succeeded, Usage
from schemas.codes import Code

NOW = 1_700_000_000_000
RULES = BurialRules(ratio=0.5, least=4, window=60_000, first=10_000, longest=30_000)
DEAD = DeadLetter(Fault(Code.REJECTED, "E", "no"))
DONE = Complete(Succeeded(b"1", Usage()))


def opened() -> DeadLetterBreaker:
    breaker = DeadLetterBreaker(RULES)
    for _ in range(RULES.least):
        breaker.weigh(DEAD, NOW)
    return breaker


def test_dead_letters_are_buried_while_they_are_few() -> None:
    breaker = DeadLetterBreaker(RULES)
    assert [breaker.weigh(DEAD, NOW) for _ in range(3)] == [DEAD] * 3
    assert breaker.is_closed


def test_the_one_that_is_too_many_is_put_off_until_the_breaker_closes_half_and_so_are_those_in_hand() -> None:
    breaker = opened()
    assert breaker.open_for(NOW) == 10_000
    assert breaker.weigh(DEAD, NOW + 1) == Defer(NOW + 10_000, "dead_letter_breaker")
    assert not breaker.is_closed


def test_many_dead_letters_among_more_successes_open_nothing() -> None:
    breaker = DeadLetterBreaker(RULES)
    for _ in range(50):
        breaker.weigh(DONE, NOW)
        breaker.weigh(DONE, NOW)
        assert breaker.weigh(DEAD, NOW) == DEAD


def test_what_ended_before_the_window_is_forgotten() -> None:
    breaker = DeadLetterBreaker(RULES)
    for minute in range(20):
        assert breaker.weigh(DEAD, NOW + minute * 25_000) == DEAD


@pytest.mark.parametrize("code", [Code.INVALID_JSON, Code.INVALID_PAYLOAD, Code.KEY_CONFLICT, Code.DEADLINE_EXCEEDED])
def test_what_says_nothing_about_our_health_is_always_buried_and_opens_nothing(code: Code) -> None:
    letter = DeadLetter(Fault(code, "E", "no"))
    breaker = opened()
    assert breaker.weigh(letter, NOW) == letter
    fresh = DeadLetterBreaker(RULES)
    for _ in range(100):
        assert fresh.weigh(letter, NOW) == letter


def test_a_success_after_the_wait_closes_it_and_one_during_it_does_not() -> None:
    breaker = opened()
    breaker.weigh(DONE, NOW + 5_000)
    assert not breaker.is_closed
    breaker.weigh(DONE, NOW + 10_000)
    assert breaker.is_closed
    assert breaker.weigh(DEAD, NOW + 10_001) == DEAD


def test_a_dead_letter_after_the_wait_is_buried_and_opens_it_for_twice_as_long_up_to_the_limit() -> None:
    breaker, now = opened(), NOW
    for wait in (20_000, 30_000, 30_000):
        now += breaker.open_for(now)
        assert breaker.weigh(DEAD, now) == DEAD
        assert breaker.open_for(now) == wait
        assert breaker.weigh(DEAD, now) == Defer(now + wait, "dead_letter_breaker")


def test_other_dispositions_pass_and_a_ratio_of_zero_turns_it_off() -> None:
    breaker = DeadLetterBreaker(BurialRules(ratio=0.0, least=1))
    assert [breaker.weigh(DEAD, NOW) for _ in range(200)] == [DEAD] * 200
    assert opened().weigh(Release("drain"), NOW) == Release("drain")
