"""Follow-ups: written with their result, taken for sending, forgotten once they are sent; for all three stores."""

import asyncio
from dataclasses import replace

import pytest

from consumer.core.outbox import FollowUp
from consumer.core.ports import Store
from consumer.core.row import Change, Ref, Status
from consumer.store.change import outgoing
from tests.contract.stores import KIND, Subject, claim_of, row_of, run_of, success

LEASE_MS = 30_000
FIRST = FollowUp("mail.log", "order-7/1", b'{"n": 1}', None, 0)
SECOND = FollowUp("mail.log", "order-7/2", b"\xff\x00", None, 0)


def with_follow_ups(ref: Ref, *follow_ups: FollowUp) -> Change:
    return replace(success(ref), follow_ups=follow_ups or (FIRST, SECOND), traceparent="00-trace", deadline=2**53)


async def done(store: Store, *follow_ups: FollowUp, key: str = "order-7") -> Change:
    change = with_follow_ups(await run_of(store, claim_of(key)), *follow_ups)
    assert await store.write(change)
    return change


async def taken(store: Store, limit: int = 10) -> list[str]:
    return [outgoing.key for outgoing in await store.outbox(limit, LEASE_MS)]


async def test_follow_ups_are_kept_whole_with_the_result_that_asks_for_them(subject: Subject) -> None:
    async with subject.store() as store:
        change = await done(store)
        row = await row_of(store)
        assert (row.status, row.result) == (Status.SUCCEEDED, b'{"sent":true}')
        kept = list(await store.outbox(10, LEASE_MS))
        at = kept[0].submitted_at
        assert at is not None
        assert abs(at - subject.now()) < 60_000
        assert [replace(one, id=0) for one in kept] == [outgoing(each, change, at) for each in (FIRST, SECOND)]
        assert kept[0].id < kept[1].id


async def test_the_same_result_again_brings_no_second_follow_ups(subject: Subject) -> None:
    async with subject.store() as store:
        change = await done(store)
        assert await store.write(change)
        assert await taken(store) == ["order-7/1", "order-7/2"]


async def test_a_result_that_does_not_count_leaves_no_follow_ups(subject: Subject) -> None:
    async with subject.store() as store:
        stale = await run_of(store, claim_of(owner="them"))
        await subject.end_leases()
        await run_of(store, claim_of())
        cancelled = await run_of(store, claim_of("cancelled"))
        await store.cancel(KIND, "cancelled", "ann")
        for ref in (stale, cancelled, Ref(KIND, "unknown", 1)):
            assert not await store.write(with_follow_ups(ref))
        assert await taken(store) == []


async def test_results_with_and_without_follow_ups_share_a_batch(subject: Subject) -> None:
    async with subject.store() as store:
        refs = [await run_of(store, claim_of(f"key-{number}")) for number in range(6)]
        changes = [
            with_follow_ups(ref, replace(FIRST, key=ref.key)) if n % 2 else success(ref) for n, ref in enumerate(refs)
        ]
        changes.append(with_follow_ups(replace(refs[0], key="unknown")))
        assert await asyncio.gather(*map(store.write, changes)) == [True] * 6 + [False]
        assert sorted(await taken(store)) == ["key-1", "key-3", "key-5"]
        assert {(await row_of(store, ref.key)).status for ref in refs} == {Status.SUCCEEDED}


async def test_what_was_taken_is_nobody_else_s_for_a_while_that_doubles(subject: Subject) -> None:
    async with subject.store() as store:
        await done(store)
        for wait in (LEASE_MS, 2 * LEASE_MS, 4 * LEASE_MS):
            assert await taken(store) == ["order-7/1", "order-7/2"]
            await subject.let_pass(wait - 5_000)
            assert await taken(store) == []
            await subject.let_pass(5_000)


async def test_what_was_sent_is_forgotten_and_the_rest_is_not(subject: Subject) -> None:
    async with subject.store() as store:
        await done(store)
        first, second = await store.outbox(10, LEASE_MS)
        await store.sent([first.id, 99])
        await store.sent([])
        await subject.let_pass(LEASE_MS)
        assert await store.outbox(10, LEASE_MS) == [second]
        await store.sent([second.id])
        await subject.let_pass(10 * LEASE_MS)
        assert await taken(store) == []


async def test_the_oldest_are_taken_first_and_no_more_than_the_limit(subject: Subject) -> None:
    async with subject.store() as store:
        await done(store, *(replace(FIRST, key=f"{number:02}") for number in range(15)))
        assert [await taken(store), await taken(store)] == [
            [f"{n:02}" for n in range(10)],
            [f"{n:02}" for n in range(10, 15)],
        ]


async def test_what_could_not_be_sent_does_not_stand_in_the_way_of_newer_ones(subject: Subject) -> None:
    async with subject.store() as store:
        await done(store)
        assert await taken(store, limit=2) == ["order-7/1", "order-7/2"]
        await done(store, replace(FIRST, key="newer"), key="order-8")
        assert await taken(store, limit=2) == ["newer"]


async def test_a_delay_is_spent_on_the_broker_or_for_another_queue_in_the_store(subject: Subject) -> None:
    async with subject.store() as store:
        await done(store, replace(FIRST, delay=60_000), replace(SECOND, queue="mail", delay=60_000))
        assert await store.unsent() == 1, "the other one waits for its time"
        (ours,) = await store.outbox(10, LEASE_MS)
        assert (ours.key, ours.queue, ours.due) == ("order-7/1", None, (ours.submitted_at or 0) + 60_000)
        await store.sent([ours.id])
        assert await store.unsent() == 0
        await subject.let_pass(60_000)
        assert await store.unsent() == 1
        (theirs,) = await store.outbox(10, LEASE_MS)
        assert (theirs.key, theirs.queue, theirs.due) == ("order-7/2", "mail", ours.due)


@pytest.mark.parametrize("subject", ["sqlite", "postgres"], indirect=True)
async def test_a_store_of_several_queues_gives_each_its_own(subject: Subject) -> None:
    async with subject.store() as store, subject.store("jobs.other") as other:
        await done(store)
        await done(other, replace(FIRST, key="of the other"), key="order-8")
        assert (await other.unsent(), await store.unsent()) == (1, 2)
        assert await taken(other) == ["of the other"]
        assert await taken(store) == ["order-7/1", "order-7/2"]
        assert await store.unsent() == 2, "they were taken, and nobody said that they were sent"


@pytest.mark.parametrize("subject", ["sqlite", "postgres"], indirect=True)
async def test_two_daemons_that_take_at_once_share_what_there_is(subject: Subject) -> None:
    async with subject.store() as ours, subject.store() as theirs:
        keys = [f"{number:02}" for number in range(40)]
        await done(ours, *(replace(FIRST, key=key) for key in keys))
        takes = await asyncio.gather(*(taken(store, limit=5) for store in (ours, theirs) * 4))
        assert sorted(key for take in takes for key in take) == keys
