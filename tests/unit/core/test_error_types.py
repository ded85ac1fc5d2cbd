"""Labels for the types of exceptions are few, whatever handlers raise."""

from consumer.core.error_types import MOST_PAIRS, MOST_TYPES, OTHER, ErrorTypes


def test_the_first_types_of_a_process_keep_their_names_and_later_ones_share_one() -> None:
    types = ErrorTypes()
    names = [f"app.E{number}" for number in range(MOST_TYPES)]
    assert [types.label("k", name) for name in names] == names
    assert types.label("k", "app.Late") == OTHER
    assert types.label("k", names[0]) == names[0]
    assert types.label("other kind", names[0]) == names[0]


def test_types_that_many_kinds_share_are_limited_as_pairs() -> None:
    types = ErrorTypes()
    labels = [types.label(f"k{number}", name) for number in range(MOST_PAIRS) for name in ("E", "F")]
    assert labels == ["E", "F"] * (MOST_PAIRS // 2) + [OTHER] * MOST_PAIRS
    assert types.label("k0", "F") == "F"
