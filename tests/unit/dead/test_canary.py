"""What the row of a redriven job says about it."""

import asyncio

import pytest

from config.settings import Settings
from consumer.core.errors import Unfinished
from consumer.core.job import Message
from consumer.core.letters import letter_of
from consumer.core.row import Row, Status
from consumer.dead.canary import Canary, outcome_of, watch
from consumer.store.open import open_store
from consumer.wiring import topology_of


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


async def test_a_letter_whose_job_has_no_name_stops_the_canary_at_once_since_it_has_no_row() -> None:
    message = Message(b"1", message_id="a")
    letter = letter_of(message, topology_of(Settings()), (None, "a"), 0)
    with pytest.raises(Unfinished, match=rf"nobody sees what becomes of letter {letter.id} \(no kind a\)"):
        await watch(await open_store("memory://"), [letter], Canary(1, patience=60), asyncio.Event())
