"""Async jobs that misuse the loop, asyncio or their process: each gets its own outcome, and nobody else notices."""

import asyncio
from typing import Any

from consumer.core.outcome import Crashed, Failed, Outcome, Succeeded, TimedOut
from tests.support.pools import Bench, pool

IO: dict[str, Any] = {"modules": ("waiting", "misusing"), "io_concurrency": 60}
FAILING = {
    "closes_the_loop": "Cannot close a running event loop",
    "runs_a_loop_inside": "asyncio.run() cannot be called from a running event loop",
    "raises_generator_exit": "",
    "raises_stop_iteration": "coroutine raised StopIteration",
    "raises_a_group": "unhandled errors in a TaskGroup",
    "recurses": "maximum recursion depth exceeded",
    "returns_a_coroutine": "a coroutine has no form in JSON",
    "returns_a_generator": "a generator has no form in JSON",
}
SUCCEEDING = (
    "stops_the_loop",
    "runs_a_loop_in_a_thread",
    "shuts_the_loop_down",
    "sets_handlers_and_factories",
    "leaves_callbacks_that_raise",
    "leaves_a_generator",
    "forgets_an_error",
    "starts_20_000_tasks",
    "handles_signals",
    "leaves_an_alarm",
    "forks",
    "runs_a_program_that_stays",
    "speaks_from_everywhere",
    "cancels_everybody",
    "ends_in_its_destructor",
    "waits_in_threads",
    "returns_much",
)


def begin(bench: Bench, *misuses: str, seconds: float = 30.0) -> list[asyncio.Task[Outcome]]:
    return [bench.begin("misuse", misuse, key=misuse, seconds=seconds) for misuse in misuses]


def neighbours(bench: Bench) -> list[asyncio.Task[Outcome]]:
    return [*begin(bench, *["waits_in_threads"] * 3), *(bench.begin("nap", {"seconds": 0.3}) for _ in range(5))]


async def all_succeed(tasks: list[asyncio.Task[Outcome]]) -> None:
    outcomes = await asyncio.gather(*tasks)
    assert [outcome for outcome in outcomes if not isinstance(outcome, Succeeded)] == []


async def test_jobs_that_misuse_what_all_share_do_it_to_themselves_only() -> None:
    async with pool(**IO) as bench:
        succeeding = neighbours(bench) + begin(bench, *SUCCEEDING)
        for (name, message), outcome in zip(
            FAILING.items(), await asyncio.gather(*begin(bench, *FAILING)), strict=True
        ):
            assert isinstance(outcome, Failed), (name, outcome)
            assert message in outcome.fault.message, (name, outcome.fault)
        await all_succeed(succeeding)
        await all_succeed(neighbours(bench) + begin(bench, "uses_another_context"))
        await all_succeed(neighbours(bench) + begin(bench, "patches_asyncio"))
        assert (bench.exits, bench.pool.full) == ([], True)


async def test_a_job_that_waits_for_a_lock_or_blocks_its_threads_is_late_and_nobody_else() -> None:
    async with pool(**IO) as bench:
        late = begin(bench, "holds_a_lock", "holds_a_lock", "keeps_all_threads", seconds=0.5)
        for outcome in await asyncio.gather(*late, *begin(bench, "holds_a_lock", seconds=0.7)):
            assert isinstance(outcome, TimedOut)
            assert "longer than its execution timeout" in outcome.fault.message
        await all_succeed(neighbours(bench))
        await bench.until_full()


async def test_what_takes_the_child_along_is_charged_to_who_did_it_or_to_nobody_if_it_is_over() -> None:
    async with pool(**IO) as bench:
        beside = neighbours(bench)
        await all_succeed(begin(bench, "leaves_a_callback_that_ends_the_process"))
        await all_succeed(beside)
        beside = neighbours(bench)[2:5]
        [outcome] = await asyncio.gather(*begin(bench, "closes_descriptors"))
        assert isinstance(outcome, Crashed)
        await all_succeed(beside)
        [outcome] = await asyncio.gather(*begin(bench, "exhausts_memory"))
        assert isinstance(outcome, Crashed)
        await bench.until_full()
