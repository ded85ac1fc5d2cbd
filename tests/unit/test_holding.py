"""A result in memory outlasts a store that is away."""

import asyncio

import pytest

from consumer.core.errors import StoreUnavailable
from consumer.core.row import Change, Ref, Status
from consumer.holding import HoldingStore
from tests.support.twins import World, message

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
