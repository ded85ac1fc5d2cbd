"""The pipeline between in-memory twins: each hop, and what happens when the hop itself fails."""

import asyncio

import pytest

from consumer.core.claim import ClaimRequest
from consumer.core.disposition import Complete, DeadLetter, Defer, Duplicate, Release, Retry, Settlement
from consumer.core.job import Fault, Message
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


async def die_with_the_job(world: World, owner: str) -> None:
    """Another owner claims the job of the world's store and is never heard of again."""
    doomed = World(interrupt, owner, world.store.inner)
    doomed.store.away = ["write", "write"]
    await doomed.deliver(message())


async def test_a_result_is_stored_and_then_acked() -> None:
    world = World()
    delivery = await world.deliver(message())
    row = await world.row()
    assert delivery.settled == ACK
    assert (row.status, row.result) == (Status.SUCCEEDED, b'{"ok": true}')
    assert isinstance(world.notes.verdicts[0][0].disposition, Complete)


async def test_a_second_delivery_of_a_finished_job_is_acked_and_not_run_again() -> None:
    world = World()
    await world.deliver(message())
    again = await world.deliver(message())
    assert again.settled == ACK
    assert len(world.slots.executed) == 1
    assert isinstance(world.notes.verdicts[1][0].disposition, Duplicate)


async def test_two_deliveries_at_once_run_one_after_the_other_and_have_one_effect() -> None:
    world = World()
    both = await asyncio.gather(*(world.deliver(message()) for _ in range(2)))
    assert [delivery.settled for delivery in both] == [ACK, ACK]
    assert len(world.slots.executed) == 1


async def test_a_failure_is_retried_by_a_confirmed_copy_that_is_recorded_and_then_acked() -> None:
    world = World(fail)
    delivery = await world.deliver(message())
    row, [copy] = await world.row(), world.publisher.confirmed
    assert delivery.settled == ACK
    assert (row.status, row.attempt, row.due_at) == (Status.RETRYING, 1, START + 1000)
    assert copy.message.headers[headers.ATTEMPT] == 2
    assert copy.exchange == "jobs.delay.v1.3"
    assert row.fault == ODD


async def test_the_last_failure_is_dead_lettered_recorded_and_acked() -> None:
    world = World(fail)
    current = message()
    for _ in range(3):
        delivery = await world.deliver(current)
        assert delivery.settled == ACK
        current = world.publisher.confirmed[-1].message
        world.time.now += 10_000
    row = await world.row()
    assert (row.status, row.attempt) == (Status.FAILED, 3)
    assert world.publisher.confirmed[-1].exchange == "jobs.dlx"
    assert current.headers[headers.CODE] == "attempts_exhausted"
    assert [past.attempt for past in row.history] == [1, 2, 3]


@pytest.mark.parametrize(
    ("body", "key", "kind", "code"),
    [
        (b"1", None, "k", Code.MISSING_KEY),
        (b"1", "a", None, Code.MISSING_KIND),
    ],
)
async def test_a_message_that_is_no_job_is_dead_lettered_byte_for_byte_without_a_claim(
    body: bytes, key: str | None, kind: str | None, code: Code
) -> None:
    world = World()
    delivery = await world.deliver(message(key, body, kind))
    [copy] = world.publisher.confirmed
    assert delivery.settled == ACK
    assert copy.message.body == body
    assert copy.message.headers[headers.CODE] == code
    assert world.slots.executed == []


async def test_another_payload_under_a_finished_key_is_dead_lettered_and_the_row_stays() -> None:
    world = World()
    await world.deliver(message())
    before = await world.row()
    other = await world.deliver(message(body=b'{"n": 2}'))
    assert other.settled == ACK
    assert world.publisher.confirmed[0].message.headers[headers.CODE] == "key_conflict"
    assert await world.row() == before


async def test_the_same_payload_in_another_order_is_the_same_job() -> None:
    world = World()
    await world.deliver(message(body=b'{"a": 1, "b": 2}'))
    again = await world.deliver(message(body=b'{ "b":2,"a":1 }'))
    assert again.settled == ACK
    assert world.publisher.confirmed == []


async def test_a_deadline_that_is_over_ends_the_job_before_it_runs() -> None:
    world = World()
    late = Message(b"1", {headers.DEADLINE: START - 1}, type="k", message_id="a")
    await world.deliver(late)
    assert world.publisher.confirmed[0].message.headers[headers.CODE] == "deadline_exceeded"
    assert world.slots.executed == []
    assert world.slots.taken == 0


async def test_a_job_that_another_owner_runs_is_put_off_until_its_lease_ends_uncharged() -> None:
    world = World()
    await die_with_the_job(world, "them")
    delivery = await world.deliver(message())
    [copy] = world.publisher.confirmed
    assert delivery.settled == ACK
    assert isinstance(world.notes.verdicts[0][0].disposition, Defer)
    assert headers.ATTEMPT not in copy.message.headers
    assert copy.message.headers[headers.DUE] == START + 60_000


async def test_a_job_that_died_with_its_owner_is_taken_over_as_the_same_attempt() -> None:
    world = World()
    await die_with_the_job(world, "them")
    world.time.now += 60_001
    delivery = await world.deliver(message())
    row = await world.row()
    assert delivery.settled == ACK
    assert (row.status, row.attempt, row.crashes) == (Status.SUCCEEDED, 1, 1)


async def test_a_job_that_killed_too_many_owners_is_dead_lettered_without_another_run() -> None:
    world = World()
    for owner in ("one", "two", "three"):
        await die_with_the_job(world, owner)
        world.time.now += 60_001
    await world.deliver(message())
    assert world.publisher.confirmed[0].message.headers[headers.CODE] == "worker_crashed"
    assert world.slots.executed == []
    assert (await world.row()).status is Status.FAILED


async def test_a_suspect_runs_alone_after_two_dead_owners() -> None:
    world = World()
    for owner in ("one", "two"):
        await die_with_the_job(world, owner)
        world.time.now += 60_001
    await world.deliver(message())
    assert [work.alone for work in world.slots.executed] == [True]


# what happens when the hop itself fails


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
