import asyncio

import pytest

from consumer.worker.places import Places


async def test_places_are_given_up_to_the_capacity() -> None:
    places = Places()
    places.resize(2)
    assert [await places.take(), await places.take()] == [True, True]
    third = asyncio.create_task(places.take())
    await asyncio.sleep(0)
    assert (third.done(), places.waiting) == (False, 1)
    places.give_back()
    assert await third
    assert places.waiting == 0


async def test_who_came_first_is_served_first_even_by_a_place_that_is_free_again() -> None:
    places = Places()
    places.resize(1)
    await places.take()
    order: list[int] = []

    async def ask(number: int) -> None:
        await places.take()
        order.append(number)
        places.give_back()

    asking = [asyncio.create_task(ask(number)) for number in range(3)]
    await asyncio.sleep(0)
    places.give_back()
    late = asyncio.create_task(ask(3))
    await asyncio.gather(*asking, late)
    assert order == [0, 1, 2, 3]


async def test_a_smaller_capacity_gives_nothing_until_enough_came_back() -> None:
    places = Places()
    places.resize(2)
    await places.take()
    await places.take()
    places.resize(1)
    waiting = asyncio.create_task(places.take())
    await asyncio.sleep(0)
    places.give_back()
    await asyncio.sleep(0)
    assert not waiting.done()
    places.give_back()
    assert await waiting


async def test_a_place_given_to_somebody_who_left_goes_to_the_next() -> None:
    places = Places()
    places.resize(1)
    await places.take()
    left, next_one = [asyncio.create_task(places.take()) for _ in range(2)]
    await asyncio.sleep(0)
    places.give_back()
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert await asyncio.wait_for(next_one, 1)


async def test_closing_sends_everybody_away_until_it_is_open_again() -> None:
    places = Places()
    waiting = asyncio.create_task(places.take())
    await asyncio.sleep(0)
    places.close()
    assert await waiting is False
    places.resize(1)
    assert await places.take() is False
    places.reopen()
    assert await places.take() is True
