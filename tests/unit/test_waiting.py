"""Waiting for word, but not for ever."""

import asyncio

from consumer.waiting import told


async def test_word_ends_the_wait_whether_it_was_there_or_comes() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    assert await told(event, 60)
    assert await told(event, 60)


async def test_without_word_the_wait_ends_by_itself_and_says_so() -> None:
    assert not await told(asyncio.Event(), 0.001)
