"""When a kind cools down, who is let through, and how it ends."""

from consumer.core.cooldown import Cooldown
from consumer.core.cooling import Cooling, CoolingRules
from consumer.core.job import Fault
from consumer.core.outcome import Failed, Interrupted, Outcome, Succeeded, Usage
from schemas.codes import Code

NOW = 1_700_000_000_000
DONE = Succeeded(b"1", Usage())
BAD = Failed(Fault(Code.ATTEMPTS_EXHAUSTED, "E", "no"), Usage())


def down(after: float | None = None) -> Outcome:
    return Failed(Fault(Code.ATTEMPTS_EXHAUSTED, "DependencyDown", "x"), Usage(), after=after, dependency="partner-api")


def cooling(**rules: float) -> Cooling:
    return Cooling(CoolingRules(**rules), lambda: 0.5)  # type: ignore[arg-type]


def test_a_kind_whose_dependency_is_down_cools_for_as_long_as_it_says_and_others_do_not() -> None:
    state = cooling()
    assert state.heard("a", down(30), NOW) == Cooldown("a", NOW + 30_000, "partner-api is down")
    assert state.due("a", NOW + 29_999) == NOW + 30_000 + 7_500
    assert state.due("a", NOW + 30_000) is None
    assert state.due("b", NOW) is None
    assert state.enter("b", NOW) is None


def test_jobs_that_are_put_off_come_back_spread_behind_the_end() -> None:
    chances = iter((0.0, 0.25, 1.0))
    state = Cooling(CoolingRules(), lambda: next(chances))
    state.heard("a", down(20), NOW)
    assert [state.due("a", NOW) for _ in range(3)] == [NOW + 20_000, NOW + 22_500, NOW + 30_000]


def test_without_a_time_the_wait_doubles_while_probes_fail_and_is_capped() -> None:
    state, now = cooling(first=1_000, longest=3_000), NOW
    for wait in (1_000, 2_000, 3_000, 3_000):
        cooldown = state.heard("a", down(), now)
        assert cooldown is not None
        assert cooldown.until == now + wait
        now = cooldown.until


def test_runs_that_began_before_the_cooldown_neither_lengthen_nor_end_it() -> None:
    state = cooling()
    state.heard("a", down(), NOW)
    assert state.heard("a", down(), NOW + 1) is None
    assert state.heard("a", DONE, NOW + 2) is None
    assert state.due("a", NOW + 3) is not None


def test_somebody_who_says_that_it_will_take_longer_is_believed() -> None:
    state = cooling()
    state.heard("a", down(5), NOW)
    assert state.heard("a", down(60), NOW + 1) == Cooldown("a", NOW + 60_001, "partner-api is down")
    assert state.heard("a", down(10), NOW + 2) is None


def test_after_the_cooldown_a_few_probes_go_first_ever_further_apart() -> None:
    state = cooling()
    state.heard("a", down(10), NOW)
    back = NOW + 10_000
    let_through = [tick for tick in range(0, 8_000, 500) if state.enter("a", back + tick) is None]
    assert let_through == [0, 1_000, 3_000, 7_000]


def test_probes_that_come_to_nothing_never_keep_the_next_one_away_for_longer_than_the_cooldown_was() -> None:
    state, now = cooling(), NOW
    state.heard("a", down(4), NOW)
    for _ in range(20):
        now += 4_000
        assert state.enter("a", now) is None


def test_a_probe_that_succeeds_ends_it_for_everybody_and_the_next_time_starts_from_the_beginning() -> None:
    state = cooling(first=1_000)
    state.heard("a", down(), NOW)
    state.heard("a", down(), NOW + 1_000)
    assert state.heard("a", DONE, NOW + 3_000) == Cooldown("a", 0, "a probe succeeded")
    assert [state.enter("a", NOW + 3_000) for _ in range(5)] == [None] * 5
    again = state.heard("a", down(), NOW + 4_000)
    assert again is not None
    assert again.until == NOW + 5_000


def test_a_probe_that_was_interrupted_decides_nothing_and_the_next_one_goes() -> None:
    state = cooling()
    state.heard("a", down(10), NOW)
    assert state.enter("a", NOW + 10_000) is None
    assert state.heard("a", Interrupted("drain"), NOW + 10_001) is None
    assert state.enter("a", NOW + 11_000) is None


def test_a_kind_of_whose_last_runs_too_many_failed_cools_where_that_is_asked_for() -> None:
    state = cooling(ratio=0.5, window=4)
    assert [state.heard("a", outcome, NOW) for outcome in (DONE, BAD, DONE)] == [None] * 3
    assert state.heard("a", BAD, NOW) == Cooldown("a", NOW + 5_000, "2 of its last 4 runs failed")
    probed = state.heard("a", BAD, NOW + 5_000)
    assert probed is not None
    assert (probed.until, probed.why) == (NOW + 15_000, "a probe failed")
    unasked = cooling()
    assert [unasked.heard("a", BAD, NOW) for _ in range(100)] == [None] * 100


def test_what_another_replica_saw_counts_here_too_and_so_does_its_end() -> None:
    state = cooling()
    state.learn([Cooldown("a", NOW + 5_000, "x")], NOW)
    assert state.due("a", NOW) is not None
    state.learn([Cooldown("a", NOW + 5_000, "x")], NOW + 6_000)
    assert state.enter("a", NOW + 6_000) is None
    assert state.enter("a", NOW + 6_001) is not None
    state.learn([], NOW + 6_002)
    assert state.enter("a", NOW + 6_003) is None
    assert state.states() == {"a": False}


def test_who_comes_when_the_time_is_over_but_nobody_has_seen_it_up_only_probes() -> None:
    state = cooling()
    state.learn([Cooldown("a", NOW - 1, "x")], NOW)
    assert state.states() == {"a": True}
    assert [state.enter("a", NOW) is None for _ in range(3)] == [True, False, False]
    assert state.heard("a", DONE, NOW + 1) == Cooldown("a", 0, "a probe succeeded")


def test_our_own_cooldown_is_not_ended_by_a_store_that_has_not_heard_of_it() -> None:
    state = cooling()
    state.heard("a", down(10), NOW)
    state.learn([], NOW + 1)
    assert state.due("a", NOW + 2) is not None


def test_many_runs_that_fail_together_are_one_round_and_not_as_many() -> None:
    state = cooling(first=1_000)
    begun = [state.heard("a", down(1), NOW + ms) for ms in range(50)]
    assert [cooldown.until for cooldown in begun if cooldown] == [NOW + 1_000], "told once"
    probed = state.heard("a", BAD, NOW + 1_050)
    assert probed is not None
    assert probed.until == NOW + 1_050 + 2_000, "the second in a row"


def test_a_dependency_that_is_said_to_be_back_at_once_is_not_called_without_a_pause() -> None:
    state = cooling()
    for round_ in range(5):
        assert state.heard("a", down(0), NOW + 1_000 * round_) is not None
        assert state.enter("a", NOW + 1_000 * round_ + 999) is not None


def test_a_malformed_payload_says_nothing_about_what_the_kind_needs() -> None:
    malformed = Failed(Fault(Code.INVALID_PAYLOAD, "ValidationError", "no"), Usage())
    probed = cooling()
    probed.heard("a", down(5), NOW)
    assert probed.heard("a", malformed, NOW + 5_000) is None
    counted = cooling(ratio=0.5, window=4)
    assert [counted.heard("a", malformed, NOW) for _ in range(10)] == [None] * 10
