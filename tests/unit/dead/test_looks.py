"""An id is whatever somebody typed."""

import re
from collections.abc import Collection
from types import SimpleNamespace

import pytest

from consumer.core.errors import SettingsError
from consumer.dead.looks import known


class Index:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def letters(self, ids: Collection[str]) -> list[SimpleNamespace]:
        self.asked += ids
        return [SimpleNamespace(id=name) for name in ids]


@pytest.mark.parametrize("typed", ["", "\udcff", "1\n2", "x" * 100_000])
async def test_what_can_be_no_id_is_told_in_one_short_line_and_no_database_is_asked_for_it(typed: str) -> None:
    index = Index()
    with pytest.raises(SettingsError, match=re.escape(f"there is no dead letter {typed[:40]!a}: ")):
        await known(index, [typed, "0" * 20])  # type: ignore[arg-type]
    assert index.asked == ["0" * 20]
