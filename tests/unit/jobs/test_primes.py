import pytest
from pydantic import ValidationError

from consumer.jobs.primes import LARGEST, Range, count, primes_up_to


@pytest.mark.parametrize(
    ("n", "primes"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (9, 4), (100, 25), (7919, 1000), (1_000_000, 78_498)]
)
def test_primes_are_counted_up_to_and_including_n(n: int, primes: int) -> None:
    assert primes_up_to(n) == primes


def test_the_result_repeats_the_question() -> None:
    assert count(Range(n=100)) == {"n": 100, "primes": 25}


@pytest.mark.parametrize("n", [-1, LARGEST + 1, 1.5, "many"])
def test_a_number_out_of_bounds_is_refused(n: object) -> None:
    with pytest.raises(ValidationError):
        Range.model_validate({"n": n})
