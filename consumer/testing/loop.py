"""Whether an event loop may be run here."""

import asyncio


def forbid_a_running_loop(who: str, way_out: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"{who} needs an event loop of its own, and one runs here already: {way_out}")
