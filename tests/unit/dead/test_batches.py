"""Few large letters or many small ones."""

from consumer.dead.batches import MOST, MOST_BYTES, batches


def sizes(*letters: int) -> list[list[int]]:
    return list(batches(letters, lambda size: size))


def test_a_batch_holds_only_so_many_bytes_and_a_letter_that_is_larger_goes_alone() -> None:
    half = MOST_BYTES // 2
    assert sizes(half, half, 1, 2 * MOST_BYTES, half) == [[half, half], [1], [2 * MOST_BYTES], [half]]


def test_a_batch_holds_only_so_many_letters() -> None:
    assert [len(batch) for batch in sizes(*[1] * (2 * MOST + 1))] == [MOST, MOST, 1]


def test_nothing_makes_no_batch() -> None:
    assert sizes() == []
