"""What the row of a redriven job says about it."""

import pytest

from consumer.core.row import Row, Status
from consumer.dead.canary import outcome_of


def row(status: Status, generation: int) -> Row:
    return Row("k", "a", status, generation=generation)


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (None, None),
        (row(Status.SUCCEEDED, 1), True),
        (row(Status.SUCCEEDED, 0), True),
        (row(Status.FAILED, 0), None),
        (row(Status.FAILED, 1), False),
        (row(Status.CANCELLED, 2), False),
        (row(Status.RETRYING, 1), None),
        (row(Status.PROCESSING, 1), None),
    ],
)
def test_an_old_failure_says_nothing_about_the_new_generation(found: Row | None, answer: bool | None) -> None:
    assert outcome_of(found, 1) is answer
