from itertools import pairwise

from consumer.worker.wear import Wear


def test_the_first_child_serves_as_long_as_was_asked_for_and_others_up_to_a_fifth_less() -> None:
    limits = [Wear(1_000, 3_600.0, 7).of(number) for number in range(50)]
    assert limits[0] == Wear(1_000, 3_600.0, 7)
    assert all(800 <= each.jobs <= 1_000 and 2_880 <= each.age <= 3_600 and each.memory == 7 for each in limits)


def test_children_that_start_together_go_one_after_the_other() -> None:
    ages = sorted(Wear(age=1_000.0).of(number).age for number in range(8))
    assert min(later - sooner for sooner, later in pairwise(ages)) > 8


def test_few_jobs_are_not_made_fewer() -> None:
    assert {Wear(jobs=3).of(number).jobs for number in range(20)} == {3}


def test_no_limit_stays_none() -> None:
    assert Wear().of(7) == Wear()
