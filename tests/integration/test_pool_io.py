"""Io children with real jobs: many at a time, the same outcomes as in cpu children, and what each job may see."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from consumer.core.outcome import Failed, Interrupted, Succeeded, TimedOut
from schemas.codes import Code
from tests.support.pools import own_descriptors, pool
from tests.support.waiting import eventually

IO: dict[str, Any] = {"modules": ("waiting", "unruly")}
MIXED: dict[str, Any] = {"modules": ("ordinary", "waiting", "unruly"), "processes": 1}


async def test_many_async_jobs_run_at_a_time_in_one_child() -> None:
    async with pool(**IO, io_concurrency=40) as bench:
        assert bench.pool.figures().slots == 40
        pids = await asyncio.gather(*(bench.result("meet", 40) for _ in range(40)))
    assert len(set(pids)) == 1


async def test_no_more_run_at_a_time_than_a_child_may_have() -> None:
    async with pool(**IO, io_concurrency=2, io_processes=2) as bench:
        running = [bench.begin("nap", {"seconds": 30}) for _ in range(5)]

        async def so() -> bool:
            return (bench.pool.figures().running, bench.pool.figures().waiting) == (4, 1)

        await eventually(so, "four running and one waiting")
        assert bench.pool.figures().busy == {"cpu": 0, "io": 2}
        assert sorted(len(member.queue) for member in bench.pool._crew.members) == [2, 2]
        bench.pool.pause()
        for each in running:
            each.cancel()


@pytest.mark.parametrize(("modules", "children"), [(("ordinary",), 2), (("waiting",), 1), (("ordinary", "waiting"), 3)])
async def test_only_kinds_that_exist_have_children(modules: tuple[str, ...], children: int) -> None:
    async with pool(modules=modules) as bench:
        assert bench.pool.full
        assert sum(bench.pool.figures().children.values()) == len(bench.pool.pids) == children


async def test_neither_sort_waits_for_a_place_of_the_other() -> None:
    async with pool(**MIXED, io_concurrency=2) as bench:
        cpu = [bench.begin("sleep", {"seconds": 30}) for _ in range(3)]

        async def all_taken() -> bool:
            return bench.pool.figures().waiting == 1

        await eventually(all_taken, "a full cpu child")
        assert await bench.result("async_echo", 1) == 1
        io = [bench.begin("nap", {"seconds": 30}) for _ in range(3)]
        cpu[0].cancel()
        await eventually(all_taken, "a full io child")
        bench.pool.pause()
        for each in [*cpu, *io]:
            each.cancel()


async def test_an_async_handler_gets_its_payload_and_knows_its_run() -> None:
    async with pool(**IO) as bench:
        about = await bench.result("async_whoami", {}, attempt=3, seconds=5.0)
        assert await bench.result("async_echo", {"a": [1, "é"]}, payload="/a/1") == "é"
        text = "é" * 3_000_000
        results = await asyncio.gather(*(bench.result("async_echo", body=f'"{text}"'.encode()) for _ in range(3)))
    assert 0 < about.pop("left") <= 5
    assert about == {"kind": "async_whoami", "key": "key", "attempt": 3}
    assert all(result == text for result in results)


@pytest.mark.parametrize(
    ("kind", "payload", "code", "message"),
    [
        ("nap", {"seconds": "x"}, Code.INVALID_PAYLOAD, "seconds: float_parsing"),
        ("raises", "lookup", Code.ATTEMPTS_EXHAUSTED, "it always fails"),
        ("raises", "sys_exit", Code.ATTEMPTS_EXHAUSTED, "3"),
        ("raises", "interrupt", Code.ATTEMPTS_EXHAUSTED, ""),
        ("raises", "cancelled", Code.ATTEMPTS_EXHAUSTED, ""),
        ("exits_in_task", None, Code.ATTEMPTS_EXHAUSTED, "3"),
        ("huge_async", 9_000_000, Code.RESULT_TOO_LARGE, "the limit is 8000000"),
    ],
)
async def test_what_fails_in_an_io_child_fails_as_in_a_cpu_child(
    kind: str, payload: Any, code: Code, message: str
) -> None:
    async with pool(**IO) as bench:
        neighbour = bench.begin("nap", {"seconds": 0.1})
        outcome = await bench.run(kind, payload)
        assert isinstance(outcome, Failed)
        assert (outcome.fault.code, message in outcome.fault.message) == (code, True), outcome.fault
        assert "consumer/worker" not in outcome.fault.traceback
        assert isinstance(await neighbour, Succeeded)
    assert bench.exits == ["drain"]


async def test_each_job_has_a_context_of_its_own() -> None:
    async with pool(**IO) as bench:
        seen = await asyncio.gather(*(bench.result("own_context", name) for name in "abc"))
    assert seen == [["nothing", name, name, name] for name in "abc"]


async def test_an_async_job_may_run_a_program() -> None:
    async with pool(**IO) as bench:
        assert await bench.result("runs_a_program", "print(6 * 7)") == "42\n"


async def test_each_job_pays_for_its_own_cpu_time() -> None:
    async with pool(**IO) as bench:
        spinning, napping = await asyncio.gather(bench.run("spins", 0.3), bench.run("nap", {"seconds": 0.2}))
    assert isinstance(spinning, Succeeded)
    assert isinstance(napping, Succeeded)
    assert spinning.usage.cpu_seconds > 4 * napping.usage.cpu_seconds


async def test_tasks_that_a_job_leaves_behind_end_with_it(tmp_path: Path) -> None:
    async with pool(**IO) as bench:
        assert await bench.result("leaves_tasks", str(tmp_path / "marks")) == "done"
        assert sorted((tmp_path / "marks").read_text().splitlines()) == ["inner cancelled", "outer cancelled"]


async def test_a_child_with_a_thread_left_behind_gets_no_more_and_ends_when_its_last_job_is_over() -> None:
    async with pool(**IO) as bench:
        neighbour = bench.begin("nap", {"seconds": 0.3})
        pid = await bench.result("leaves_a_thread", 1000)
        assert await bench.result("nap", {"seconds": 0}) != pid
        outcome = await neighbour
        assert isinstance(outcome, Succeeded)
        assert int(outcome.result) == pid

        async def replaced() -> bool:
            return bench.exits == ["recycle"]

        await eventually(replaced, "the end of the old child")


async def test_an_io_child_is_recycled_after_its_number_of_jobs() -> None:
    async with pool(**IO, recycle_jobs=5, io_concurrency=3) as bench:
        pids = await asyncio.gather(*(bench.result("nap", {"seconds": 0.01}) for _ in range(15)))

        async def three_left() -> bool:
            return bench.exits == ["recycle"] * 3

        await eventually(three_left, "three recycled children")
        assert all(pids.count(pid) <= 5 for pid in pids)
        await bench.until_full()


async def test_stopping_lets_async_jobs_finish_and_interrupts_the_rest() -> None:
    async with pool(**IO) as bench:
        quick, long = bench.begin("nap", {"seconds": 0.2}), bench.begin("nap", {"seconds": 30})

        async def both() -> bool:
            return bench.pool.figures().running == 2

        await eventually(both, "two running jobs")
        await bench.pool.stop(grace=0.6)
        assert isinstance(await quick, Succeeded)
        assert await long == Interrupted("drain deadline")


async def test_io_children_come_and_go_without_leaving_descriptors() -> None:
    async with pool(**IO):
        pass
    before = own_descriptors()
    async with pool(**IO) as bench:
        await bench.run("async_crash", "segfault")
        await bench.run("async_echo", 1)
    assert own_descriptors() == before


async def test_jobs_side_by_side_each_have_a_context_that_works() -> None:
    async with pool(**IO) as bench:
        outcomes = await asyncio.gather(*(bench.run("speaks", key=key) for key in "abc"))
        assert all(isinstance(outcome, Succeeded) for outcome in outcomes), outcomes
        for key, outcome in zip("abc", outcomes, strict=True):
            assert isinstance(outcome, Succeeded)
            assert not os.path.exists(json.loads(outcome.result))  # noqa: ASYNC240, PTH110 - it takes no time
            assert [(ask.kind, ask.payload) for ask in outcome.follow_ups] == [
                ("async_echo", b'{"from":"%s"}' % key.encode())
            ]
            lines = [(line.stream, line.text) for line in bench.lines if line.key == key]
            assert lines == [("stdout", f"{key} prints"), ("consumer.job", "logs")] * 3
        assert sorted(bench.marks) == [("speaks", key, 0.5, f"half of {key}") for key in "abc"]


async def test_a_job_knows_whether_it_was_cancelled_or_out_of_time() -> None:
    async with pool(**IO) as bench:
        running = bench.begin("stops_when_cancelled", key="cancelled")
        assert isinstance(await bench.run("stops_when_cancelled", key="late", seconds=0.1), TimedOut)
        assert bench.pool.cancel("stops_when_cancelled", "cancelled")
        assert await running == Interrupted("cancelled")
        assert [(line.key, line.text) for line in bench.lines] == [
            ("late", "cancelled: False"),
            ("cancelled", "cancelled: True"),
        ]


async def test_a_job_that_forks_or_cancels_itself_is_no_trouble_for_others() -> None:
    async with pool(**IO) as bench:
        neighbour = bench.begin("nap", {"seconds": 0.3})
        assert isinstance(await bench.run("cancels_itself"), Failed)
        assert await bench.result("forks_in_loop") == "done"
        assert await bench.result("process_of_its_own") == 0
        assert isinstance(await neighbour, Succeeded)
    assert bench.exits == ["drain"]


async def test_a_suspect_of_the_store_is_alone_in_the_pod_whatever_its_sort() -> None:
    async with pool(**MIXED) as bench:
        before = [bench.begin("sleep", {"seconds": 0.1}), bench.begin("nap", {"seconds": 0.1})]
        suspect = bench.begin("nap", {"seconds": 0.1}, alone=True)
        after = [bench.begin("sleep", {"seconds": 0.1}), bench.begin("nap", {"seconds": 0.1})]
        outcomes = await asyncio.gather(suspect, *before, *after)
    spans = [(o.usage.started_at, o.usage.finished_at) for o in outcomes if isinstance(o, Succeeded)]
    assert len(spans) == 5
    alone, *others = spans
    assert [span for span in others if span[0] < alone[1] - 1 and span[1] > alone[0] + 1] == []


async def test_what_a_job_changes_in_its_process_is_put_back_or_the_child_replaced() -> None:
    async with pool(**IO) as bench:
        before = await bench.result("sees_its_process")
        await bench.run("changes_its_process")
        assert await bench.result("sees_its_process") == before
        neighbour = bench.begin("nap", {"seconds": 0.2})
        assert await bench.result("nices_its_process") == before[-1]
        assert (await bench.result("sees_its_process"))[-1] != before[-1]
        outcome = await neighbour
        assert isinstance(outcome, Succeeded)
        assert int(outcome.result) == before[-1]


async def test_a_job_that_uses_too_much_cpu_time_has_timed_out() -> None:
    async with pool(**IO, cpu_limit=0.3) as bench:
        neighbour = bench.begin("nap", {"seconds": 0.5})
        outcome = await bench.run("spins", 100)
        assert isinstance(outcome, TimedOut)
        assert "more CPU time than its limit of 0.3 s" in outcome.fault.message
        assert isinstance(await neighbour, Succeeded)
    assert bench.exits == ["drain"]
