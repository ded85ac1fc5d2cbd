"""Whatever happens in whatever order: nothing is lost, each key has one result, and nobody is charged wrongly.

A failing example says the story as it went; `make faults` tries many more.
"""

import asyncio
import os
import random
from contextlib import suppress

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.faults.scheduler import Choices, Over, VirtualLoop
from tests.faults.universe import Universe, check

EXAMPLES = int(os.environ.get("CONSUMER_TEST_EXAMPLES", "400"))
LENGTH = 500
"""Bytes of choices; most steps take two."""


def play(choices: bytes) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, capture_logs():
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        runner.run(_play(Choices(choices), loop))


async def _play(choices: Choices, loop: VirtualLoop) -> None:
    universe = Universe(choices, loop)
    try:
        with suppress(Over):
            await universe.rage()
        await universe.calm_down()
        check(universe)
    except BaseException:
        note("\n".join(universe.told))
        raise


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(min_size=8, max_size=LENGTH))
def test_nothing_is_lost_doubled_or_charged_wrongly_in_any_order_of_events(choices: bytes) -> None:
    play(choices)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**64))
def test_nor_in_long_and_wild_stories(seed: int) -> None:
    play(random.Random(seed).randbytes(2 * LENGTH))
