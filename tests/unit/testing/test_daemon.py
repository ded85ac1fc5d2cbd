"""A daemon in memory, as a person who wrote handlers would test them with it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumer import DependencyDown, JobContext, Reject, Retry, job
from consumer.testing import MemoryDaemon
from consumer.testing.fixtures import memory_daemon

assert memory_daemon  # a fixture

Make = Callable[..., MemoryDaemon]


class Partner:
    """A fake of what the handlers depend on: it fails as often as it is told."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.charged: list[str] = []

    def charge(self, key: str) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.charged.append(key)


partner = Partner()


@pytest.fixture(autouse=True)
def fresh_partner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.partner", Partner())


@job("order.charge", max_attempts=3, backoff=10)
def charge(order: dict[str, int], context: JobContext) -> int:
    partner.charge(context.key)
    context.progress(1.0, "charged")
    context.send("order.mail", {"order": order["number"]}, delay=60)
    context.send("print", "label", queue="printers", delay=5)
    return context.attempt


@job("order.mail")
async def mail(payload: dict[str, int]) -> str:
    await asyncio.sleep(0)
    return f"mail about {payload['order']}"


def test_a_job_runs_and_its_status_is_what_the_command_would_show(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge)
    daemon.publish("order.charge", {"number": 7}, key="7")
    daemon.run_until_idle()
    status = daemon.status("order.charge", "7")
    assert (status["status"], status["result"], status["attempt"]) == ("succeeded", 1, 1)
    assert partner.charged == ["7"]


def test_nothing_runs_before_it_is_told_to(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge)
    daemon.publish("order.charge", {"number": 7})
    assert daemon.runs() == []
    daemon.advance(0)
    assert len(daemon.runs()) == 1


def test_a_retry_waits_its_time_and_then_succeeds(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge, mail, chance=1.0)
    partner.errors = [ConnectionError("away"), ConnectionError("away")]
    key = daemon.publish("order.charge", {"number": 7})
    daemon.advance(9.9)
    assert daemon.status("order.charge", key)["status"] == "retrying"
    daemon.advance(0.1)
    assert [run.status for run in daemon.runs(key=key)] == ["retry", "retry"]
    began = daemon.now
    daemon.run_until_idle()
    third = daemon.runs("order.charge")[2]
    assert (third.status, third.result, third.progress) == ("succeeded", 3, ((1.0, "charged"),))
    assert daemon.now - began == 80_000, "20 s until the third attempt, and 60 s until the mail"


def test_a_job_that_fails_for_good_is_a_dead_letter_that_can_be_redriven(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge, mail)
    partner.errors = [ConnectionError("away")] * 3
    daemon.publish("order.charge", {"number": 7}, key="7", headers={"shop": "west"})
    daemon.run_until_idle()
    [letter] = daemon.dead_letters
    assert (letter.kind, letter.key, letter.payload) == ("order.charge", "7", {"number": 7})
    assert (letter.code, letter.error_type, letter.error) == ("attempts_exhausted", "ConnectionError", "away")
    assert (letter.attempts, letter.message.headers["shop"]) == (3, "west")
    assert daemon.redrive("rejected") == 0
    assert daemon.redrive() == 1
    daemon.run_until_idle()
    status = daemon.status("order.charge", "7")
    assert (daemon.dead_letters, status["status"], status["generation"]) == ([], "succeeded", 1)


def test_a_rejected_job_is_not_tried_again(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge)
    partner.errors = [Reject("no such account")]
    key = daemon.publish("order.charge", {"number": 7})
    daemon.run_until_idle()
    [run] = daemon.runs()
    assert run.expect("rejected").error == "no such account"
    assert daemon.status("order.charge", key)["error"]["code"] == "rejected"


def test_while_a_dependency_is_down_its_kind_waits_and_others_go_on(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge, mail)
    partner.errors = [DependencyDown("bank", after=60)]
    daemon.publish("order.charge", {"number": 1}, key="1")
    daemon.publish("order.charge", {"number": 2}, key="2")
    daemon.publish("order.mail", {"order": 3})
    daemon.advance(59)
    assert [(run.kind, run.status) for run in daemon.runs()] == [
        ("order.charge", "put_off"),
        ("order.mail", "succeeded"),
    ]
    daemon.run_until_idle()
    assert sorted(partner.charged) == ["1", "2"]
    assert [run.attempt for run in daemon.runs("order.charge")] == [1, 1, 1], "nobody was charged for the wait"


def test_a_deadline_ends_the_waiting(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge)
    partner.errors = [Retry("busy", after=30)]
    daemon.publish("order.charge", {"number": 1}, deadline=20)
    daemon.publish("order.charge", {"number": 2}, deadline=20, delay=21)
    daemon.run_until_idle()
    assert [letter.code for letter in daemon.dead_letters] == ["deadline_exceeded"] * 2


def test_a_delayed_job_sees_the_time_that_is_left_by_the_daemons_clock(memory_daemon: Make) -> None:
    @job("left", timeout=1000)
    def left(payload: None, context: JobContext) -> float:
        return context.time_left()

    daemon = memory_daemon(left)
    daemon.publish("left", None, delay=7 * 24 * 3600, deadline=7 * 24 * 3600 + 100)
    daemon.run_until_idle()
    [run] = daemon.runs()
    assert 99 < run.result <= 100


def test_a_second_message_of_a_job_does_not_run_it_again(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge, mail)
    for _ in range(2):
        daemon.publish("order.charge", {"number": 7}, key="7")
    daemon.run_until_idle()
    assert partner.charged == ["7"]
    daemon.publish("order.charge", {"number": 8}, key="7")
    daemon.run_until_idle()
    assert [letter.code for letter in daemon.dead_letters] == ["key_conflict"]


@pytest.mark.parametrize(
    ("payload", "code"),
    [({"number": "many"}, "invalid_payload"), (b'{"number": NaN}', "invalid_json"), (b"\xff", "invalid_json")],
)
def test_a_bad_payload_never_reaches_the_handler(memory_daemon: Make, payload: Any, code: str) -> None:
    daemon = memory_daemon(charge)
    daemon.publish("order.charge", payload)
    daemon.run_until_idle()
    assert [letter.code for letter in daemon.dead_letters] == [code]
    assert partner.charged == []


def test_follow_ups_run_where_their_handlers_are_and_are_published_where_not(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge, mail)
    daemon.publish("order.charge", {"number": 7}, key="7")
    daemon.run_until_idle()
    assert daemon.status("order.mail", "order.charge/7/1")["result"] == "mail about 7"
    to_mail, to_printer = daemon.published
    assert (to_mail.target, to_mail.kind, to_mail.queue) == ("follow_up", "order.mail", "default")
    assert (to_printer.target, to_printer.queue, to_printer.payload) == ("follow_up", "printers", "label")


def test_a_kind_that_no_handler_here_has_gets_its_grace_and_is_then_a_dead_letter(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge)
    daemon.publish("order.misspelt", 1)
    daemon.advance(290)
    assert daemon.dead_letters == []
    daemon.run_until_idle()
    assert [letter.code for letter in daemon.dead_letters] == ["unknown_kind"]


def test_a_handler_may_have_a_loop_of_its_own_and_async_ones_share_the_daemons(memory_daemon: Make) -> None:
    loops = []

    @job("own")
    def own(payload: int) -> int:
        return asyncio.run(asyncio.sleep(0, payload))

    @job("shared")
    async def shared(payload: int) -> None:
        loops.append(asyncio.get_running_loop())

    daemon = memory_daemon(own, shared)
    for _ in range(2):
        daemon.publish("own", 1)
        daemon.publish("shared", 1)
        daemon.run_until_idle()
    assert [run.status for run in daemon.runs()] == ["succeeded"] * 4
    assert len(set(loops)) == 1


@pytest.mark.parametrize("sort", ["def", "async def"])
def test_what_ends_the_test_flies_and_the_daemon_can_be_closed(sort: str) -> None:
    @job("fails")
    def fails(payload: Any) -> None:
        pytest.fail("a fake says so")

    @job("fails")
    async def fails_too(payload: Any) -> None:
        pytest.fail("a fake says so")

    with MemoryDaemon(fails if sort == "def" else fails_too) as daemon:
        daemon.publish("fails", 1)
        with pytest.raises(pytest.fail.Exception, match="a fake says so"):
            daemon.run_until_idle()


def test_a_daemon_needs_no_with() -> None:
    daemon = MemoryDaemon(charge)
    daemon.publish("order.charge", {"number": 7})
    daemon.run_until_idle()
    assert len(daemon.runs()) == 1


def test_a_daemon_that_is_closed_says_so() -> None:
    with MemoryDaemon(charge) as daemon:
        pass
    with pytest.raises(RuntimeError, match="this MemoryDaemon is closed"):
        daemon.run_until_idle()


def test_modules_can_be_named_instead_of_handlers(memory_daemon: Make) -> None:
    daemon = memory_daemon(modules="consumer.jobs.primes")
    key = daemon.publish("primes.count", {"n": 100})
    daemon.run_until_idle()
    assert daemon.status("primes.count", key)["status"] == "succeeded"


def test_a_job_that_comes_back_for_ever_ends_the_test_with_its_name(
    memory_daemon: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    @job("down")
    def down(payload: Any) -> None:
        raise DependencyDown("bank")

    monkeypatch.setattr("consumer.testing.daemon.STEPS", 50)
    daemon = memory_daemon(down)
    daemon.publish("down", 1, key="7")
    with pytest.raises(AssertionError, match=r"not idle after 50 steps: the last of it was down '7', and Defer"):
        daemon.run_until_idle()


def test_a_job_that_was_never_begun_has_no_status_and_the_test_is_told_why(memory_daemon: Make) -> None:
    daemon = memory_daemon(charge)
    daemon.publish("order.charge", {"number": 7}, key="7")
    with pytest.raises(LookupError, match=r"no job of kind 'order.charge' with key '7' was begun: was it .* run\?"):
        daemon.status("order.charge", "7")


async def test_a_test_with_a_loop_of_its_own_is_told_to_be_a_plain_one() -> None:
    daemon = MemoryDaemon(charge)
    daemon.publish("order.charge", {"number": 7}, key="7")
    with pytest.raises(RuntimeError, match=r"MemoryDaemon needs an event loop of its own.*: make the test a plain def"):
        daemon.run_until_idle()


def test_what_a_settings_file_says_of_kinds_counts(memory_daemon: Make, tmp_path: Path) -> None:
    file = tmp_path / "consumer.toml"
    file.write_text('queue = "x"\n[kinds."order.charge"]\nmax_attempts = 1\nfailure_ratio = 0.5\n[kinds.other]\n')
    partner.errors = [ConnectionError("no answer")]
    daemon = memory_daemon(charge, settings=file)
    daemon.publish("order.charge", {"number": 7})
    daemon.run_until_idle()
    assert [run.code for run in daemon.runs()] == ["attempts_exhausted"]
