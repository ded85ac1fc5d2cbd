"""How many letters to have in memory at a time: their bodies may be large."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
MOST, MOST_BYTES = 200, 8 * 1024 * 1024


def batches(letters: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """In their order. `size`: bytes of one; one that is larger than a batch may be has a batch of its own."""
    batch: list[T] = []
    room = MOST_BYTES
    for letter in letters:
        if batch and (len(batch) == MOST or size(letter) > room):
            yield batch
            batch, room = [], MOST_BYTES
        batch.append(letter)
        room -= size(letter)
    if batch:
        yield batch
