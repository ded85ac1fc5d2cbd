"""The pipeline between in-memory twins when a hop itself fails: given back, uncharged, and recognised later."""

import asyncio

import pytest

from consumer.core.claim import ClaimRequest
from consumer.core.disposition import DeadLetter, Release, Retry, Settlement
from consumer.core.job import Fault
from consumer.core.outcome import Crashed, Failed, Interrupted, Outcome, TimedOut, Usage
from consumer.core.ports import Work
from consumer.core.row import Status
from schemas import headers
from schemas.codes import Code
from tests.support.twins import START, World, message, succeed

ACK, RELEASE = [Settlement.ACK], [Settlement.RELEASE]
ODD = Fault(Code.ATTEMPTS_EXHAUSTED, "app.Odd", "no luck")


def fail(_: Work) -> Outcome:
    return Failed(ODD, Usage(START, START + 1), types=("app.Odd",))


def interrupt(_: Work) -> Outcome:
    return Interrupted("withdrawn")


async def test_admit_when_intake_was_stopped_gives_the_delivery_back_unstarted() -> None:
    world = World()
    world.slots.stopped = True
    delivery = await world.deliver(message())
    assert delivery.settled == RELEASE
    assert await world.store.find("k", "a") is None


async def test_claim_when_the_store_is_away_gives_it_back_and_stops_intake() -> None:
    world = World()
    world.store.away = ["claim"]
    delivery = await world.deliver(message())
    assert delivery.settled == RELEASE
    assert len(world.notes.trips) == 1
    assert world.slots.executed == []
    assert world.slots.taken == 0


@pytest.mark.parametrize(
    "outcome",
    [
        TimedOut(Fault(Code.EXECUTION_TIMEOUT, "TimedOut", "too long"), Usage()),
        Crashed(Fault(Code.WORKER_CRASHED, "Crashed", "SIGKILL"), Usage()),
    ],
)
async def test_execute_when_the_child_dies_is_charged_as_an_attempt_and_retried(outcome: Outcome) -> None:
    world = World(lambda _: outcome)
    delivery = await world.deliver(message())
    assert delivery.settled == ACK
    assert isinstance(world.notes.verdicts[0][0].disposition, Retry)
    assert world.publisher.confirmed[0].message.headers[headers.ATTEMPT] == 2


async def test_an_interrupted_run_is_given_back_uncharged_and_runs_later_as_the_same_attempt() -> None:
    world = World(interrupt)
    first = await world.deliver(message())
    assert first.settled == RELEASE
    assert (await world.row()).status is Status.PENDING
    world.slots.run = succeed
    second = await world.deliver(message())
    assert second.settled == ACK
    row = await world.row()
    assert (row.status, row.attempt, row.crashes) == (Status.SUCCEEDED, 1, 0)


async def test_commit_when_the_store_is_away_gives_it_back_and_the_redelivery_has_one_effect() -> None:
    world = World()
    world.store.away = ["write", "write"]
    first = await world.deliver(message())
    assert first.settled == RELEASE
    assert len(world.notes.trips) == 1
    assert world.held.refs == set()
    second = await world.deliver(message())
    assert second.settled == ACK
    row = await world.row()
    assert (row.status, row.attempt, row.crashes) == (Status.SUCCEEDED, 1, 0)


@pytest.mark.parametrize("result", ["returned", "nacked", "timeout", "error"])
async def test_confirm_when_the_broker_does_not_take_the_copy_gives_it_back_uncharged(result: str) -> None:
    world = World(fail)
    world.publisher.failing = [result]
    delivery = await world.deliver(message())
    row = await world.row()
    assert delivery.settled == RELEASE
    assert (row.status, row.attempt, row.history) == (Status.PENDING, 1, ())
    assert len(world.notes.trips) == 1


async def test_a_confirmed_copy_whose_record_was_lost_is_recognised_when_both_come_back() -> None:
    world = World(fail)
    world.store.away = ["write", "write"]
    first = await world.deliver(message())
    assert first.settled == RELEASE
    [copy] = world.publisher.confirmed
    world.slots.run = succeed
    world.time.now += 1000
    due = await world.deliver(copy.message)
    stale = await world.deliver(message())
    assert (due.settled, stale.settled) == (ACK, ACK)
    assert [work.attempt for work in world.slots.executed] == [1, 2]
    assert (await world.row()).status is Status.SUCCEEDED


async def test_settle_when_the_channel_is_gone_is_noted_and_the_redelivery_is_a_duplicate() -> None:
    world = World()
    lost = await world.deliver(message(), channel_gone=True)
    again = await world.deliver(message())
    assert (lost.settled, again.settled) == (ACK, ACK)
    assert [on_time for _, _, on_time in world.notes.verdicts] == [False, True]
    assert len(world.slots.executed) == 1


async def test_a_result_that_the_store_cannot_hold_is_dead_lettered_and_not_run_again() -> None:
    world = World()
    world.store.unfit = (b'{"ok": true}',)
    first, again = await world.deliver(message()), await world.deliver(message())
    assert (first.settled, again.settled) == (ACK, ACK)
    assert [copy.message.headers[headers.CODE] for copy in world.publisher.confirmed] == ["result_not_json"]
    assert (await world.row()).status is Status.FAILED
    assert (len(world.slots.executed), world.notes.trips, world.held.refs) == (1, [], set())


async def test_a_key_that_the_store_cannot_hold_is_dead_lettered_and_intake_goes_on() -> None:
    world = World()
    world.store.unfit = ("a",)
    delivery = await world.deliver(message())
    assert delivery.settled == ACK
    assert world.publisher.confirmed[0].message.headers[headers.CODE] == "missing_key"
    assert (world.notes.trips, world.slots.executed, world.slots.taken) == ([], [], 0)


async def test_a_result_whose_row_is_gone_is_not_acked_and_the_redelivery_stores_it() -> None:
    world = World()

    def lose_the_row(work: Work) -> Outcome:
        world.store.inner._backend._rows.clear()  # type: ignore[attr-defined]
        return succeed(work)

    world.slots.run = lose_the_row
    lost = await world.deliver(message())
    assert lost.settled == RELEASE
    assert world.notes.trips == []
    world.slots.run = succeed
    again = await world.deliver(message())
    assert again.settled == ACK
    assert (await world.row()).status is Status.SUCCEEDED


async def test_a_result_whose_claim_was_lost_goes_round_since_nobody_else_may_answer_for_its_delivery() -> None:
    world = World()

    late: list[object] = []

    def lose_the_claim(work: Work) -> Outcome:
        """As a claim does that we sent before, and gave up waiting for."""
        request = ClaimRequest("k", "a", work.job.fingerprint, "us", 60_000, crash_limit=3)
        late.append(asyncio.ensure_future(world.store.inner._backend.claim([request])))
        return succeed(work)

    world.slots.run = lose_the_claim
    assert (await world.deliver(message())).settled == RELEASE
    world.slots.run = succeed
    assert (await world.deliver(message())).settled == ACK
    row = await world.row()
    assert (row.status, row.attempt, row.crashes) == (Status.SUCCEEDED, 1, 0)


async def test_a_released_delivery_leaves_no_lease_behind() -> None:
    world = World(interrupt)
    await world.deliver(message())
    assert world.held.refs == set()
    assert isinstance(world.notes.verdicts[0][0].disposition, Release)


async def test_a_dead_letter_that_cannot_be_published_is_kept_by_the_broker() -> None:
    world = World()
    world.publisher.failing = ["returned"]
    delivery = await world.deliver(message(None))
    assert delivery.settled == RELEASE
    assert isinstance(world.notes.verdicts[0][0].disposition, DeadLetter)
