from consumer.core.job import Job
from consumer.core.outcome import Crashed, Interrupted, Succeeded, Usage
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.run import Run
from consumer.worker.suspects import ZYGOTE_DIED, Suspects


def a_run(key: str = "one", *, alone: bool = False) -> Run:
    return Run(1, Work(Job("kind", key, b""), 1, 1.0, alone), Sort.CPU, lambda: None)


async def test_all_that_ran_when_the_zygote_died_are_suspects_and_charged_nothing() -> None:
    suspects = Suspects()
    assert [suspects.judge(a_run(key), ZYGOTE_DIED) for key in ("one", "two")] == [ZYGOTE_DIED] * 2
    assert all(("kind", key) in suspects for key in ("one", "two"))
    assert ("kind", "three") not in suspects


async def test_one_that_ran_alone_then_is_charged_with_it() -> None:
    suspects = Suspects()
    suspects.judge(a_run(), ZYGOTE_DIED)
    outcome = suspects.judge(a_run(alone=True), ZYGOTE_DIED)
    assert isinstance(outcome, Crashed)
    assert outcome.usage == Usage()  # which nobody saw
    assert ("kind", "one") not in suspects


async def test_any_outcome_of_its_own_clears_a_suspect_and_is_not_changed() -> None:
    suspects = Suspects()
    for outcome in (Succeeded(b"1", Usage()), Interrupted("cancelled")):
        suspects.judge(a_run(), ZYGOTE_DIED)
        assert suspects.judge(a_run(alone=True), outcome) == outcome
        assert ("kind", "one") not in suspects


async def test_only_the_latest_are_remembered() -> None:
    suspects = Suspects()
    for number in range(1_001):
        suspects.judge(a_run(str(number)), ZYGOTE_DIED)
    assert ("kind", "0") not in suspects
    assert ("kind", "1") in suspects
