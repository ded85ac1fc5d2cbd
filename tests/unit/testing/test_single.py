"""A handler through the real path, as a person who wrote one would test it."""

import asyncio
import logging
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, PositiveInt

from consumer import DependencyDown, JobContext, Reject, Retry, job
from consumer.testing import run


class Order(BaseModel):
    number: PositiveInt
    due: date | None = None


@job("testing.invoice", timeout=30, max_attempts=3, backoff=10, no_retry_on=[ZeroDivisionError])
def invoice(order: Order, context: JobContext) -> dict[str, Any]:
    return {"number": order.number, "key": context.key, "attempt": context.attempt}


@job("testing.count")
async def count(payload: int) -> int:
    await asyncio.sleep(0)
    return payload + 1


def failing(error: BaseException, **policy: Any) -> Any:
    """A handler that raises it."""

    @job("testing.failing", **policy)
    def handler(payload: Any) -> None:
        raise error

    return handler


def test_a_handler_gets_its_payload_checked_and_its_result_as_json() -> None:
    outcome = run(invoice, {"number": 7}, key="order-7", attempt=2)
    assert outcome.status == "succeeded"
    assert outcome.result == {"number": 7, "key": "order-7", "attempt": 2}
    assert (outcome.code, outcome.exception, outcome.retry_in) == (None, None, None)


def test_a_payload_can_be_a_model_as_a_producer_has_it() -> None:
    assert run(invoice, Order(number=7, due=date(2026, 5, 1))).status == "succeeded"


def test_an_async_handler_runs_in_a_loop_of_its_own() -> None:
    assert run(count, 41).result == 42


def test_a_handler_may_have_a_loop_of_its_own() -> None:
    @job("testing.loop")
    def handler(payload: int) -> int:
        return asyncio.run(asyncio.sleep(0, payload))

    assert run(handler, 7).result == 7


@pytest.mark.parametrize(
    ("body", "code", "error"),
    [
        (b'{"number": 1, "number": 2}', "invalid_json", "an object has the same name twice"),
        (b'{"number": NaN}', "invalid_json", ""),
        (b"[" * 200 + b"]" * 200, "too_deep", ""),
        (b'{"number": -1}', "invalid_payload", "number: greater_than"),
        (b"\xff", "invalid_json", ""),
    ],
)
def test_what_a_child_would_refuse_is_a_dead_letter_and_never_reaches_the_handler(
    body: bytes, code: str, error: str
) -> None:
    outcome = run(invoice, body)
    assert (outcome.status, outcome.code) == ("dead_letter", code)
    assert outcome.error is not None
    assert outcome.error.startswith(error)


@pytest.mark.parametrize(
    ("key", "code"),
    [("", "missing_key"), ("k" * 501, "missing_key"), ("a\0b", "missing_key")],
)
def test_what_the_envelope_says_is_checked_too(key: str, code: str) -> None:
    assert run(invoice, {"number": 1}, key=key).code == code


def test_an_error_is_retried_by_the_policy_of_the_kind() -> None:
    handler = failing(ConnectionError("the partner is away"), max_attempts=3, backoff=10)
    first, last = run(handler, 1), run(handler, 1, attempt=3)
    assert (first.status, first.code, first.error) == ("retry", None, "the partner is away")
    assert first.error_type == "ConnectionError"
    assert (last.status, last.code, last.retry_in) == ("dead_letter", "attempts_exhausted", None)


def test_where_the_wait_falls_in_the_range_of_its_jitter_is_the_tests_choice() -> None:
    handler = failing(OSError(), backoff=10)
    assert [run(handler, 1, chance=chance).retry_in for chance in (0.0, 0.5, 1.0)] == [5.0, 7.5, 10.0]
    assert run(handler, 1, attempt=2, chance=1.0).retry_in == 20.0


def test_a_wait_that_the_handler_asks_for_is_kept() -> None:
    assert run(failing(Retry("busy", after=90)), 1).retry_in == 90.0
    assert run(failing(Retry("busy", after="90")), 1).retry_in == 90.0


def test_a_rejection_is_final_at_once() -> None:
    outcome = run(failing(Reject("there is no such account")), 1)
    assert (outcome.status, outcome.code, outcome.error) == ("dead_letter", "rejected", "there is no such account")


def test_an_error_that_no_retry_mends_is_a_rejection() -> None:
    assert run(failing(ValueError("odd")), 1).code == "rejected"
    assert run(failing(OSError(), no_retry_on=[OSError]), 1).code == "rejected"


def test_a_dependency_that_is_down_puts_the_job_off_without_a_charge() -> None:
    outcome = run(failing(DependencyDown("partner-api", after=60), max_attempts=1), 1, attempt=1)
    assert (outcome.status, outcome.retry_in, outcome.error) == ("put_off", 60.0, "partner-api is down")


def test_a_wait_beyond_the_deadline_ends_it_now() -> None:
    outcome = run(failing(Retry("busy", after=90)), 1, deadline=60)
    assert (outcome.status, outcome.code) == ("dead_letter", "deadline_exceeded")


def test_nothing_starts_after_its_deadline() -> None:
    ran = []

    @job("testing.late")
    def handler(payload: Any) -> None:
        ran.append(payload)

    assert run(handler, 1, deadline=-1).code == "deadline_exceeded"
    assert ran == []


@pytest.mark.parametrize(
    ("result", "code"),
    [(float("nan"), "result_not_json"), ({1, 2}, "result_not_json"), ("x" * 17_000_000, "result_too_large")],
)
def test_a_result_that_could_not_be_stored_is_a_dead_letter(result: object, code: str) -> None:
    @job("testing.result")
    def handler(payload: Any) -> object:
        return result

    assert run(handler, 1).code == code


def test_what_a_handler_says_and_asks_for_can_be_looked_at() -> None:
    @job("testing.talk")
    def handler(payload: Any, context: JobContext) -> str:
        context.progress(0.5, "half")
        context.progress(1.0)
        context.logger.info("%s of %s", 1, 2)
        context.logger.debug("not in a daemon's log")
        logging.getLogger("shop").warning("odd")
        context.send("mail.send", {"to": 7}, delay=30)
        context.send("mail.send", [1], key="b", queue="mails")
        (context.tempdir / "file").write_text("x")
        return str(context.tempdir)

    outcome = run(handler, 1, key="a")
    assert outcome.progress == ((0.5, "half"), (1.0, ""))
    assert [(line.level, line.text) for line in outcome.logs] == [("INFO", "1 of 2"), ("WARNING", "odd")]
    first, second = outcome.follow_ups
    assert (first.kind, first.key, first.payload, first.delay, first.queue) == (
        *("mail.send", "testing.talk/a/1", {"to": 7}),
        *(30.0, None),
    )
    assert (second.key, second.queue) == ("b", "mails")
    assert str(outcome.tempdir) == outcome.result
    assert outcome.tempdir is not None
    assert not outcome.tempdir.exists()


def test_a_run_that_fails_sends_no_follow_up() -> None:
    @job("testing.send")
    def handler(payload: Any, context: JobContext) -> None:
        context.send("mail.send", 1)
        raise OSError

    assert run(handler, 1).follow_ups == ()


def test_a_run_leaves_logging_as_it_found_it() -> None:
    before = logging.root.level, list(logging.root.handlers)
    run(invoice, {"number": 7})
    assert (logging.root.level, logging.root.handlers) == before


def test_a_handler_can_be_told_that_its_job_was_cancelled() -> None:
    @job("testing.cancelled")
    def handler(payload: Any, context: JobContext) -> bool:
        return context.cancelled

    assert run(handler, 1).result is False
    outcome = run(handler, 1, cancelled=True)
    assert (outcome.status, outcome.result) == ("cancelled", None)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
def test_a_handler_that_exits_has_failed_and_the_test_goes_on(error: BaseException) -> None:
    assert run(failing(error), 1).status == "retry"

    @job("testing.exits")
    async def exits(payload: Any) -> None:
        raise error

    assert run(exits, 1).status == "retry"


def test_a_lack_of_memory_is_told_as_the_daemon_tells_it() -> None:
    assert run(failing(MemoryError(), max_attempts=1), 1).code == "out_of_memory"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), pytest.fail.Exception("a fake says so")])
def test_what_ends_a_test_is_no_outcome(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run(failing(error), 1)


@pytest.mark.parametrize("sort", ["def", "async def"])
def test_the_error_itself_is_there_and_its_traceback_begins_in_the_handler(sort: str) -> None:
    error = OSError("no luck")

    @job("testing.async")
    async def handler(payload: Any) -> None:
        raise error

    outcome = run(failing(error) if sort == "def" else handler, 1)
    assert outcome.exception is error
    assert outcome.traceback.splitlines()[0].endswith("in handler")


def test_the_error_can_be_let_fly() -> None:
    with pytest.raises(OSError, match="no luck"):
        run(failing(OSError("no luck")), 1, reraise=True)
    with pytest.raises(AssertionError, match=r"invalid_payload.*number: missing"):
        run(invoice, {}, reraise=True)


async def test_where_a_loop_runs_an_async_handler_can_not_and_the_test_is_told_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"await asyncio.to_thread\(run, "):
        run(count, 1)
    assert (await asyncio.to_thread(run, count, 1)).result == 2
    assert run(invoice, {"number": 7}).status == "succeeded"


def test_a_payload_that_no_producer_could_send_is_the_tests_mistake() -> None:
    with pytest.raises(TypeError, match=r"the payload can't be written as JSON .*set"):
        run(invoice, {1, 2})


def test_keys_are_text_and_attempts_count_from_1_or_it_is_the_tests_mistake() -> None:
    with pytest.raises(TypeError, match=r"kind and key of a job are text, and not 'testing.invoice' and 7"):
        run(invoice, {"number": 7}, key=7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"the first attempt is 1, and there is none before it: 0"):
        run(invoice, {"number": 7}, attempt=0)


def test_what_a_settings_file_says_of_the_kind_counts_but_for_a_timeout_of_the_tests_own(tmp_path: Path) -> None:
    file = tmp_path / "consumer.toml"
    file.write_text('[kinds."testing.time_left"]\ntimeout_seconds = 20.0\n')

    @job("testing.time_left", timeout=300)
    def left(payload: int, context: JobContext) -> float:
        return context.time_left()

    assert run(left, 1, settings=file).result == pytest.approx(20, abs=5)
    assert run(left, 1, settings=str(file), timeout=7).result == pytest.approx(7, abs=5)
