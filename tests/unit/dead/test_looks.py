"""An id is whatever somebody typed."""

import re
from collections.abc import Collection
from types import SimpleNamespace

import pytest

from consumer.core.errors import SettingsError
from consumer.core.letters import State
from consumer.dead.looks import dead, known

ID = "0" * 20


class Index:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def letters(self, ids: Collection[str]) -> list[SimpleNamespace]:
        self.asked += ids
        return [SimpleNamespace(id=name, queue="reports", state=State.PURGED) for name in ids]


@pytest.mark.parametrize("typed", ["", "\udcff", "1\n2", "x" * 100_000])
async def test_what_can_be_no_id_is_told_in_one_short_line_and_no_database_is_asked_for_it(typed: str) -> None:
    index = Index()
    with pytest.raises(SettingsError, match=re.escape(f"there is no dead letter {typed[:40]!a}: ")):
        await known(index, [typed, ID])  # type: ignore[arg-type]
    assert index.asked == [ID]


async def test_a_letter_of_another_queue_or_one_that_is_gone_is_told_before_anything_is_done() -> None:
    with pytest.raises(SettingsError, match=f"letter {ID} is one of queue 'reports', and this is 'default'"):
        await dead(Index(), "default", [ID])  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=f"letter {ID} is purged: it is in the queue no more"):
        await dead(Index(), "reports", [ID])  # type: ignore[arg-type]
