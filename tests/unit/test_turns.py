"""Turns of a key: one at a time, in order, and nobody is forgotten."""

import asyncio
from contextlib import suppress

from consumer.turns import KeyedTurns


async def test_turns_of_one_key_are_taken_in_order_and_never_overlap() -> None:
    turns, seen = KeyedTurns(), list[str]()

    async def visit(name: str) -> None:
        async with turns.turn("key"):
            seen.append(f"{name} in")
            await asyncio.sleep(0)
            seen.append(f"{name} out")

    await asyncio.gather(*(visit(name) for name in "abc"))
    assert seen == ["a in", "a out", "b in", "b out", "c in", "c out"]


async def test_other_keys_do_not_wait() -> None:
    turns = KeyedTurns()
    async with turns.turn("one"), turns.turn("two"):
        pass


async def test_a_waiter_that_is_cancelled_does_not_let_the_next_one_in_too_early() -> None:
    turns, inside = KeyedTurns(), list[str]()
    leave = asyncio.Event()

    async def visit(name: str) -> None:
        async with turns.turn("key"):
            inside.append(name)
            await leave.wait()
            inside.remove(name)

    first, second, third = [asyncio.create_task(visit(name)) for name in "abc"]
    await asyncio.sleep(0)
    second.cancel()
    with suppress(asyncio.CancelledError):
        await second
    await asyncio.sleep(0)
    assert inside == ["a"]
    leave.set()
    await asyncio.gather(first, third)
    assert turns._last == {}
