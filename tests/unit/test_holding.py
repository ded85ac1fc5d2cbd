"""A result in memory outlasts a store that is away."""

import asyncio
from dataclasses import replace

import pytest

from consumer.core.errors import StoreUnavailable
from consumer.core.job import Fault
from consumer.core.letters import buried
from consumer.core.outbox import FollowUp
from consumer.core.row import Change, Ref, Status
from consumer.holding import HoldingStore
from schemas.codes import Code
from tests.faults.queues import TOPOLOGY
from tests.support.twins import START, World, message

REF = Ref("k", "a", 1)


def holding(world: World) -> HoldingStore:
    return HoldingStore(world.store, world.notes.trip, lambda: 0.0)


async def claimed() -> World:
    world = World()
    world.store.away = ["write", "write"]
    await world.deliver(message())
    world.notes.trips.clear()
    return world


async def test_a_result_is_written_once_the_store_is_back_and_intake_hears_of_each_failure() -> None:
    world = await claimed()
    world.store.away = ["write"]
    assert await holding(world).write(Change(REF, Status.SUCCEEDED, result=b"1"))
    assert (await world.row()).status is Status.SUCCEEDED
    assert len(world.notes.trips) == 1


async def test_giving_a_claim_back_is_not_waited_for() -> None:
    world = await claimed()
    world.store.away = ["write"]
    with pytest.raises(StoreUnavailable):
        await holding(world).write(Change(REF, Status.PENDING))
    assert world.notes.trips == []


async def test_giving_up_ends_the_waiting() -> None:
    world = await claimed()
    world.store.away = ["write"] * 1000
    store = holding(world)
    writing = asyncio.create_task(store.write(Change(REF, Status.SUCCEEDED, result=b"1")))
    await asyncio.sleep(0)
    store.give_up()
    with pytest.raises(StoreUnavailable):
        await writing


async def test_a_burial_waits_for_the_store_like_a_result() -> None:
    world = await claimed()
    await world.deliver(message(None))
    copy = world.publisher.confirmed[0].message
    verdict = world.notes.verdicts[0][0]
    letter = buried(copy, TOPOLOGY, verdict, Fault(Code.MISSING_KEY, "Refused", "no key"), START)
    world.store.away = ["bury"]
    await holding(world).bury(replace(letter, id="another"))
    assert [found.id for found in await world.store.letters.letters(["another"])] == ["another"]
    assert len(world.notes.trips) == 1


async def test_a_claim_that_is_made_sure_of_waits_for_the_store_too() -> None:
    world = await claimed()
    world.store.away = ["renew"]
    assert await holding(world).renew([REF, Ref("k", "b", 1)], 1_000) == {Ref("k", "b", 1)}
    assert len(world.notes.trips) == 1


async def test_a_result_with_follow_ups_is_told_once_it_is_written_and_no_other_is() -> None:
    world, told = await claimed(), []
    posting = HoldingStore(world.store, world.notes.trip, lambda: 0.0, lambda: told.append(True))
    change = Change(REF, Status.SUCCEEDED, result=b"1", follow_ups=(FollowUp("k", "a/1", b"1", None, 0),))
    assert not await posting.write(replace(change, ref=Ref("k", "unknown", 1)))
    assert told == []
    assert await posting.write(change)
    assert await posting.write(replace(change, follow_ups=()))
    assert told == [True]
