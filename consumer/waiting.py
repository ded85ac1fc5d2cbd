"""Waiting for word, but not for ever."""

import asyncio
from contextlib import suppress


async def told(event: asyncio.Event, within: float) -> bool:
    """Wait until the event is set, `within` seconds at most; return whether it is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()
