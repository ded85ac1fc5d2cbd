"""The pool with real children: outcomes, places, order, and what a child may see."""

import asyncio
import logging
import threading
import time
from typing import Any

import pytest
import uvloop

from consumer.core.outcome import Failed, Interrupted, Succeeded
from schemas.codes import Code
from tests.support.pools import JOBS, own_descriptors, pool
from tests.support.waiting import eventually


async def test_a_handler_gets_its_payload_and_knows_its_run() -> None:
    async with pool() as bench:
        deadline = round(time.time() * 1000) + 5_000
        about = await bench.result("whoami", {}, attempt=3, deadline=deadline)
    assert {name: about[name] for name in ("kind", "key", "attempt", "deadline")} == {
        "kind": "whoami",
        "key": "key",
        "attempt": 3,
        "deadline": deadline,
    }
    assert 0 < about["left"] <= 5
    assert about["pid"] == about["group"]


async def test_a_success_tells_what_it_cost() -> None:
    async with pool() as bench:
        before = round(time.time() * 1000)
        outcome = await bench.run("sleep", {"seconds": 0.05})
    assert isinstance(outcome, Succeeded)
    assert before - 1 <= outcome.usage.started_at <= outcome.usage.finished_at - 49
    assert 0 < outcome.usage.cpu_seconds < 0.05
    assert outcome.usage.peak_memory > 1_000_000


async def test_a_payload_is_found_by_its_pointer() -> None:
    async with pool() as bench:
        assert await bench.result("echo", {"a/b": [0, {"x": "é"}]}, payload="/a~1b/1") == {"x": "é"}
        outcome = await bench.run("echo", {"a": 1}, payload="/b")
    assert isinstance(outcome, Failed)
    assert (outcome.fault.code, outcome.fault.message) == (
        Code.INVALID_PAYLOAD,
        "there is nothing at /b in the body",
    )


@pytest.mark.parametrize(
    ("kind", "body", "code", "message"),
    [
        ("sleep", b'{"seconds": "secret"}', Code.INVALID_PAYLOAD, "seconds: float_parsing"),
        ("sleep", b"{}", Code.INVALID_PAYLOAD, "seconds: missing"),
        ("echo", b"[NaN]", Code.INVALID_JSON, "NaN and Infinity are not JSON"),
        ("echo", b"[" * 101 + b"]" * 101, Code.TOO_DEEP, "nested deeper than 100"),
        ("echo", b"1" * 1001, Code.NUMBER_OUT_OF_RANGE, "more than 1000 digits"),
        ("strange", b"{}", Code.UNKNOWN_KIND, "no handler is declared for kind 'strange'"),
        ("nan", b"0", Code.RESULT_NOT_JSON, "the result isn't JSON"),
        ("surrogate", b"0", Code.RESULT_NOT_JSON, "half of a surrogate pair"),
        ("set", b"0", Code.RESULT_NOT_JSON, "a set has no form in JSON"),
        ("circle", b"0", Code.RESULT_NOT_JSON, "Circular reference"),
        ("deep", b"0", Code.RESULT_NOT_JSON, "recursion"),
        ("huge", b"8000000", Code.RESULT_TOO_LARGE, "the result has 8000002 bytes, the limit is 8000000"),
    ],
)
async def test_a_payload_or_result_that_cant_be_taken_is_refused_once_and_for_all(
    kind: str, body: bytes, code: Code, message: str
) -> None:
    async with pool(processes=1) as bench:
        outcome = await bench.run(kind, body=body)
        assert isinstance(outcome, Failed)
        assert outcome.fault.code is code
        assert message in outcome.fault.message
        assert "secret" not in outcome.fault.message
        assert outcome.retryable is False
        assert await bench.result("echo", 1) == 1
    assert bench.exits == ["drain"]


async def test_a_strict_model_takes_dates_as_json_writes_them() -> None:
    async with pool(processes=1) as bench:
        assert await bench.result("strict", {"day": "2026-01-31", "count": 4}) == 4
        outcome = await bench.run("strict", {"day": "2026-01-31", "count": "4"})
    assert isinstance(outcome, Failed)
    assert outcome.fault.message == "count: int_type"


async def test_models_in_a_result_are_dumped() -> None:
    async with pool(processes=1) as bench:
        assert await bench.result("model") == {"points": [{"x": 1}, {"x": 2}]}


async def test_large_bodies_and_results_pass_whole() -> None:
    async with pool() as bench:
        text = "é" * 3_000_000
        results = await asyncio.gather(*(bench.result("echo", text, body=f'"{text}"'.encode()) for _ in range(4)))
        assert all(result == text for result in results)
        assert await bench.result("echo", 1) == 1


async def test_what_a_handler_says_about_retrying_is_carried() -> None:
    async with pool(processes=1) as bench:
        again, never, plain = [await bench.run(kind, 7) for kind in ("retry", "reject", "always_fails")]
        flaky = await bench.result("flaky", 2, attempt=3)
    assert isinstance(again, Failed)
    assert isinstance(never, Failed)
    assert isinstance(plain, Failed)
    assert (again.retryable, again.after, again.fault.message) == (True, 7.0, "the partner is busy")
    assert (never.retryable, never.fault.code) == (False, Code.REJECTED)
    assert (plain.retryable, plain.fault.error_type, plain.fault.message) == (None, "LookupError", "it always fails")
    assert plain.types == ("builtins.LookupError", "builtins.Exception", "builtins.BaseException")
    assert 'in always_fails\n    raise LookupError("it always fails")' in plain.fault.traceback
    assert "consumer/worker" not in plain.fault.traceback
    assert flaky == 3


async def test_the_catalogue_tells_policies_and_schemas() -> None:
    async with pool(processes=1) as bench:
        policy = bench.pool.policy("sleep")
        assert policy is not None
        assert (policy.timeout, policy.retry.max_attempts) == (60.0, 3)
        assert policy.retry.retry_on == {"builtins.OSError", "custom.Error"}
        assert bench.pool.policy("strange") is None
        assert bench.pool.schemas["sleep"]["required"] == ["seconds"]


async def test_modules_of_users_may_have_the_names_of_ours() -> None:
    async with pool(modules=("uses_both",), path=(str(JOBS / "common_names"),)) as bench:
        assert await bench.result("names") == ["the user's own config", "the user's own schemas"]


async def test_a_child_has_its_two_sockets_and_no_library_of_the_parent() -> None:
    heavy = ["asyncio", "uvloop", "aio_pika", "asyncpg", "structlog", "prometheus_client", "config", "schemas"]
    async with pool() as bench:
        assert await bench.result("modules", heavy) == []
        assert await bench.result("sockets") == 2


async def test_places_are_given_in_the_order_of_asking() -> None:
    async with pool(processes=1) as bench:
        slots = [await bench.pool.take("echo"), await bench.pool.take("echo")]
        order: list[int] = []

        async def ask(number: int) -> Any:
            slot = await bench.pool.take("echo")
            order.append(number)
            return slot

        asking = [asyncio.create_task(ask(number)) for number in range(3)]
        await asyncio.sleep(0)
        assert bench.pool.figures().waiting == 3
        asking[1].cancel()
        for slot in slots:
            assert slot is not None
            slot.free()
            slot.free()
        await asyncio.gather(asking[0], asking[2])
        assert order == [0, 2]


async def test_no_job_waits_behind_a_long_one_while_a_child_idles() -> None:
    async with pool() as bench:
        long = bench.begin("sleep", {"seconds": 30})
        await bench.until(running=1)
        quick = [bench.begin("sleep", {"seconds": 0.01}) for _ in range(30)]
        async with asyncio.timeout(10):
            await asyncio.gather(*quick)
        assert not long.done()


async def test_a_suspect_runs_alone() -> None:
    async with pool() as bench:
        others = [bench.begin("sleep", {"seconds": 0.05}) for _ in range(2)]
        suspects = [bench.begin("sleep", {"seconds": 0.05}, alone=True) for _ in range(3)]
        others += [bench.begin("sleep", {"seconds": 0.05}) for _ in range(4)]
        async with asyncio.timeout(10):
            outcomes = await asyncio.gather(*suspects, *others)
    spans = [(o.usage.started_at, o.usage.finished_at) for o in outcomes if isinstance(o, Succeeded)]
    assert len(spans) == 9
    for suspect in spans[:3]:
        beside = [s for s in spans if s is not suspect and s[0] < suspect[1] - 1 and s[1] > suspect[0] + 1]
        assert beside == []


async def test_pausing_takes_back_what_has_not_started_while_children_are_busy() -> None:
    async with pool() as bench:
        running = [bench.begin("sleep", {"seconds": 1}) for _ in range(2)]
        await bench.until(running=2)
        queued = [bench.begin("echo", 1), bench.begin("echo", "x" * 100_000)]
        waiting = asyncio.create_task(bench.pool.take("echo"))
        await asyncio.sleep(0)
        bench.pool.pause()
        assert await asyncio.gather(*queued) == [Interrupted("withdrawn")] * 2
        assert await waiting is None
        assert await bench.pool.take("echo") is None
        assert not any(task.done() for task in running)
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(*running))
        bench.pool.resume()
        assert await bench.result("echo", 2) == 2


async def test_a_child_is_recycled_after_its_number_of_jobs() -> None:
    async with pool(recycle_jobs=3) as bench:
        pids = await asyncio.gather(*(bench.result("sleep", {"seconds": 0.01}) for _ in range(12)))

        async def four_left() -> bool:
            return bench.exits == ["recycle"] * 4

        await eventually(four_left, "four recycled children")
        assert all(pids.count(pid) == 3 for pid in pids)
        await bench.until_full()


async def test_children_are_born_beside_threads_that_hold_locks_and_none_hangs() -> None:
    """A child that is forked while another thread holds a lock finds it locked for ever: so we don't fork there."""
    over = threading.Event()

    def talk() -> None:
        while not over.is_set():
            logging.getLogger("a.thread").debug("holding the lock of the handlers")

    threads = [threading.Thread(target=talk) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        async with pool(recycle_jobs=1) as bench:
            for number in range(30):
                async with asyncio.timeout(10):
                    assert await asyncio.gather(*(bench.result("echo", number) for _ in range(2))) == [number] * 2
            assert bench.exits.count("recycle") > 50
    finally:
        over.set()
        for thread in threads:
            thread.join()


async def test_pools_come_and_go_without_leaving_descriptors() -> None:
    async with pool():
        pass
    before = own_descriptors()
    async with pool() as bench:
        await bench.run("sigkill")
        await bench.run("echo", 1)
    assert own_descriptors() == before


def test_the_loop_of_production_works_as_well() -> None:
    async def main() -> None:
        async with pool(result_limit=20_000_000) as bench:
            text = "x" * 6_000_000
            assert await bench.result("echo", body=f'"{text}"'.encode()) == text
            await bench.run("sigkill")
            assert await bench.result("echo", 1) == 1

    uvloop.run(main())


@pytest.mark.parametrize("modules", [("ordinary",), ("ordinary", "unruly")])
async def test_more_tickets_than_a_childs_socket_takes_hold_up_nobody(modules: tuple[str, ...]) -> None:
    """Each is close to the length at which the body would travel beside it."""
    async with pool(modules=modules, processes=1, look_ahead=20) as bench:
        holding_up = bench.begin(*(("sleep", {"seconds": 1}) if len(modules) == 1 else ("blocks", 1.0)))
        await bench.until(running=1)
        kind = "echo" if len(modules) == 1 else "async_len"
        many = [bench.begin(kind, "x" * 30_000) for _ in range(15)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert not holding_up.done()
        assert all(isinstance(outcome, Succeeded) for outcome in await asyncio.gather(holding_up, *many))
