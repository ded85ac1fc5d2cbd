import pytest

from consumer.jobs.primes import LARGEST, count, primes_up_to
from consumer.testing import run


@pytest.mark.parametrize(
    ("n", "primes"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (9, 4), (100, 25), (7919, 1000), (1_000_000, 78_498)]
)
def test_primes_are_counted_up_to_and_including_n(n: int, primes: int) -> None:
    assert primes_up_to(n) == primes


def test_the_result_repeats_the_question() -> None:
    assert run(count, {"n": 100}).result == {"n": 100, "primes": 25}


@pytest.mark.parametrize("n", [-1, LARGEST + 1, 1.5, "many"])
def test_a_number_out_of_bounds_is_refused(n: object) -> None:
    run(count, {"n": n}).expect("invalid_payload")
