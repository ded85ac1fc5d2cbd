"""What runs beside the pipeline goes on, whatever happens to it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from consumer import runner
from consumer.runner import in_background


async def test_a_helper_that_a_bug_ended_begins_again_and_the_log_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "HELPER_PAUSE", 0)
    began, again = 0, asyncio.Event()

    async def helper() -> None:
        nonlocal began
        began += 1
        if began == 1:
            raise KeyError("of ours")
        again.set()
        await asyncio.Event().wait()

    with capture_logs() as lines:
        async with in_background(helper):
            await again.wait()
    assert [(line["event"], line["log_level"], line["exc_info"]) for line in lines] == [
        ("a helper of the daemon failed, which is a bug of ours: it begins again", "error", True)
    ]


async def test_helpers_end_with_what_they_help() -> None:
    ended = asyncio.Event()

    async def helper() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with in_background(helper):
        await asyncio.sleep(0)
    assert ended.is_set()
