"""The pipeline between in-memory twins: each hop, and what happens when the hop itself fails."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest

from consumer.core.disposition import Complete, Defer, Duplicate, Settlement
from consumer.core.job import Fault, Message
from consumer.core.letter_index import Wanted
from consumer.core.outbox import FollowUp
from consumer.core.outcome import Failed, Interrupted, Outcome, Succeeded, Usage
from consumer.core.ports import Parcel, Work
from consumer.core.rooms import COPIES_AT_ONCE
from consumer.core.row import Status
from schemas import headers
from schemas.codes import Code
from tests.support.twins import START, World, message, succeed
from tests.support.waiting import eventually

ACK, RELEASE = [Settlement.ACK], [Settlement.RELEASE]
ODD = Fault(Code.ATTEMPTS_EXHAUSTED, "app.Odd", "no luck")


def fail(_: Work) -> Outcome:
    return Failed(ODD, Usage(START, START + 1), types=("app.Odd",))


def refuse(_: Work) -> Outcome:
    return Failed(ODD, Usage(START, START + 1), retryable=False)


async def pass_time(world: World, milliseconds: int) -> None:
    world.time.now += milliseconds


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


async def test_a_copy_that_waits_for_its_turn_to_be_published_waits_so_much_less_in_the_broker() -> None:
    world = World(fail)
    with world.publisher.held():
        first = [asyncio.create_task(world.deliver(message(f"k-{number}"))) for number in range(COPIES_AT_ONCE + 1)]
        await eventually(lambda: published(world, COPIES_AT_ONCE), "as many are under way as may be")
        world.time.now += 600
    await asyncio.gather(*first)
    waits = [copy.exchange for copy in world.publisher.confirmed]
    assert waits == ["jobs.delay.v1.3"] * COPIES_AT_ONCE + ["jobs.delay.v1.2"], "of a second, 0.4 are left"
    assert {copy.message.headers[headers.DUE] for copy in world.publisher.confirmed} == {START + 1000}


async def published(world: World, count: int) -> bool:
    return len(world.publisher.confirmed) == count


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


async def test_a_dead_letter_is_in_the_index_before_the_failure_is_recorded_and_its_redelivery_adds_none() -> None:
    world = World(lambda _: Failed(ODD, Usage(START, START + 1), retryable=False))
    world.store.away = ["write", "write"]  # the outcome, and the claim given back
    delivery = await world.deliver(message())
    assert delivery.settled == RELEASE
    again = await world.deliver(message())
    assert again.settled == ACK
    copies = {parcel.message.headers[headers.DEAD_ID] for parcel in world.publisher.confirmed}
    [entry] = await world.store.letters.page(Wanted("default"), 9, after=None, oldest_first=True)
    assert copies == {entry.id}
    assert (entry.kind, entry.key, entry.code, entry.attempts) == ("k", "a", "rejected", 1)


async def test_a_refused_message_is_in_the_index_with_what_could_be_read_of_it() -> None:
    world = World()
    await world.deliver(message(None, b"1"))
    [entry] = await world.store.letters.page(Wanted("default"), 9, after=None, oldest_first=True)
    assert (entry.kind, entry.key, entry.code) == ("k", None, "missing_key")
    [letter] = await world.store.letters.letters([entry.id])
    assert letter.message == world.publisher.confirmed[0].message


async def test_a_dead_letter_that_the_index_can_not_take_now_goes_back_and_is_not_acked() -> None:
    world = World()
    world.store.away = ["bury"]
    delivery = await world.deliver(message(None, b"1"))
    assert delivery.settled == RELEASE
    assert len(world.notes.trips) == 1


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


async def test_a_run_that_lost_its_claim_leaves_no_dead_letter_beside_the_result_of_the_newer_one() -> None:
    world = World(refuse)

    async def somebody_takes_over() -> None:
        world.time.now += 60_001
        await World(succeed, "them", world.store.inner).deliver(message())

    world.slots.meanwhile = somebody_takes_over
    delivery = await world.deliver(message())
    assert delivery.settled == RELEASE
    assert world.publisher.confirmed == []
    assert (await world.row()).status is Status.SUCCEEDED


async def test_nobody_takes_a_claim_over_while_its_dead_letter_is_on_its_way() -> None:
    world = World(refuse)
    world.slots.meanwhile = partial(pass_time, world, 59_000)
    publish, them = world.publisher.publish, World(succeed, "them", world.store.inner)

    async def slow(parcel: Parcel) -> None:
        await pass_time(world, 10_000)
        await them.deliver(message())
        await publish(parcel)

    world.publisher.publish = slow  # type: ignore[method-assign]
    await world.deliver(message())
    assert isinstance(them.notes.verdicts[0][0].disposition, Defer)
    assert (await world.row()).status is Status.FAILED


async def test_a_suspect_runs_alone_after_two_dead_owners() -> None:
    world = World()
    for owner in ("one", "two"):
        await die_with_the_job(world, owner)
        world.time.now += 60_001
    await world.deliver(message())
    assert [work.alone for work in world.slots.executed] == [True]


async def test_a_run_that_a_person_cancelled_is_acked_and_not_given_back() -> None:
    world = World(lambda _: Interrupted("cancelled"))
    delivery = await world.deliver(message())
    assert delivery.settled == ACK
    assert world.publisher.confirmed == []


async def test_follow_ups_are_in_the_outbox_with_the_result_and_inherit_what_their_parent_had() -> None:
    wanted = FollowUp("mail.send", "k/a/1", b'{"to": 1}', None, 0)
    world = World(lambda _: Succeeded(b"1", Usage(START, START + 1), (wanted,)))
    await world.deliver(replace(message(), headers={headers.DEADLINE: START + 9_000}))
    assert (await world.row()).status is Status.SUCCEEDED
    [outgoing] = await world.store.inner.outbox(10, 1_000)
    assert (outgoing.kind, outgoing.key, outgoing.payload) == ("mail.send", "k/a/1", b'{"to": 1}')
    assert outgoing.deadline == START + 9_000


async def test_a_job_that_is_given_up_before_its_start_is_failed_in_the_store_too() -> None:
    world = World()
    late = replace(message(), headers={headers.DEADLINE: START - 1})
    delivery = await world.deliver(late)
    row, [copy] = await world.row(), world.publisher.confirmed
    assert delivery.settled == ACK
    assert copy.message.headers[headers.CODE] == "deadline_exceeded"
    assert row.fault is not None
    assert (row.status, row.fault.code) == (Status.FAILED, Code.DEADLINE_EXCEEDED)
    assert world.slots.executed == []


async def test_a_late_copy_of_what_succeeded_long_ago_is_acked_and_not_buried() -> None:
    world = World()
    await world.deliver(message())
    await world.deliver(replace(message(), headers={headers.DEADLINE: START - 1}))
    assert world.publisher.confirmed == []
