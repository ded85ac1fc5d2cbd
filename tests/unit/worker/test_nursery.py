import asyncio
import os
from contextlib import suppress
from typing import Any

import pytest

from consumer.worker.catalogue import Sort
from consumer.worker.nursery import Birth, Death, Nursery, ZygoteLost
from tests.support.pools import CONFIG, state

AUDIENCE: Any = None
"""There is none: nothing is said."""


def let_go(birth: Birth) -> None:
    for end in (birth.stream, birth.tickets, birth.unclaimed, birth.mark):
        end.close()
    os.close(birth.output)


async def test_a_child_that_dies_before_its_birth_is_told_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    nursery = Nursery(CONFIG, AUDIENCE)
    monkeypatch.setattr(nursery, "_tell", lambda *_, **__: None)
    birth = asyncio.create_task(nursery.fork(Sort.IO))
    await asyncio.sleep(0)
    nursery._hear({"forked": 1, "pid": 4})
    nursery._hear({"died": 4, "status": 9, "cpu": 0.5, "memory": 7})
    child = await birth
    assert await child.death == Death(9, 0.5, 7)
    let_go(child)


async def test_closing_ends_children_and_whoever_waits_for_one() -> None:
    nursery = Nursery(CONFIG, AUDIENCE)
    await nursery.open()
    child = await nursery.fork(Sort.IO)
    waiting = asyncio.create_task(nursery.fork(Sort.IO))
    await asyncio.sleep(0)
    await nursery.close()
    with suppress(ZygoteLost):
        let_go(await waiting)
    assert waiting.done()
    assert await child.death == Death()
    assert state(child.pid) == ""
    let_go(child)
