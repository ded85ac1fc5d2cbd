"""Cancelling a job, and what a running one says of itself, for all three stores."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from consumer.core import cancel
from consumer.core.claim import Done
from consumer.core.ports import Store
from consumer.core.row import Mark, Ref, Row, Status
from tests.contract.stores import KIND, LEASE, Subject, claim_of, failure, release, retry, row_of, run_of, success

BY = "ann@laptop"
SUBMITTED = Row(KIND, "order-7", Status.PENDING, fingerprint=b"\x00payload", payload=b"{}", submitted_at=3)


async def submitted(store: Store) -> None:
    await store.submit(SUBMITTED)


async def given_back(store: Store) -> None:
    await store.write(release(await run_of(store, claim_of())))


async def retrying(store: Store) -> None:
    await submitted(store)
    await store.write(retry(await run_of(store, claim_of())))


async def processing(store: Store) -> None:
    await submitted(store)
    await run_of(store, claim_of())


async def succeeded(store: Store) -> None:
    await store.write(success(await run_of(store, claim_of())))


async def failed(store: Store) -> None:
    await store.write(failure(await run_of(store, claim_of())))


async def cancelled(store: Store) -> None:
    await store.cancel(KIND, "order-7", "somebody else")


Reach = Callable[[Store], Awaitable[None]]


@pytest.mark.parametrize("reach", [submitted, given_back, retrying, processing, failed])
async def test_cancelling_leaves_the_very_row_that_the_rules_say(subject: Subject, reach: Reach) -> None:
    async with subject.store() as store:
        await reach(store)
        before = await row_of(store)
        after = await store.cancel(KIND, "order-7", BY)
        assert after.finished_at is not None
        assert after == cancel.decide(before, KIND, "order-7", BY, after.finished_at)
        assert after == await row_of(store)


async def test_a_job_that_was_never_seen_gets_a_tombstone(subject: Subject) -> None:
    async with subject.store() as store:
        row = await store.cancel(KIND, "order-7", BY)
        assert row.finished_at is not None
        assert row.first_seen_at is not None
        assert replace(row, first_seen_at=row.finished_at) == cancel.decide(None, KIND, "order-7", BY, row.finished_at)
        assert 0 <= row.first_seen_at - row.finished_at < 60_000
        assert row == await row_of(store)
        assert await store.submit(SUBMITTED) == row


@pytest.mark.parametrize("reach", [succeeded, cancelled])
async def test_a_job_that_is_over_stays_as_it_is(subject: Subject, reach: Reach) -> None:
    async with subject.store() as store:
        await reach(store)
        before = await row_of(store)
        assert await store.cancel(KIND, "order-7", BY) == before
        assert await row_of(store) == before


@pytest.mark.parametrize("reach", [None, submitted, retrying, processing, failed])
async def test_a_cancelled_job_is_done_for_every_delivery(subject: Subject, reach: Reach | None) -> None:
    async with subject.store() as store:
        if reach:
            await reach(store)
        before = await store.cancel(KIND, "order-7", BY)
        for delivery in (
            claim_of(),
            claim_of(attempt=2),
            claim_of(generation=3),
            claim_of(fingerprint=b"another"),
            claim_of(owner="them"),
        ):
            assert await store.claim(delivery) == Done("cancelled")
        assert await row_of(store) == before


@pytest.mark.parametrize("change", [success, retry, failure, release])
async def test_what_a_cancelled_run_brings_later_changes_nothing(subject: Subject, change: Any) -> None:
    async with subject.store() as store:
        ref = await run_of(store, claim_of())
        before = await store.cancel(KIND, "order-7", BY)
        assert not await store.write(change(ref))
        assert await store.renew([ref], LEASE) == {ref}
        assert await row_of(store) == before


async def test_a_process_learns_which_of_its_claims_were_cancelled(subject: Subject) -> None:
    async with subject.store() as store:
        refs = {key: await run_of(store, claim_of(key)) for key in ("cancelled", "running", "done")}
        await store.write(success(refs["done"]))
        await store.cancel(KIND, "cancelled", BY)
        never = Ref(KIND, "never seen", 1)
        assert await store.cancelled([*refs.values(), never]) == {refs["cancelled"]}
        assert await store.cancelled([]) == frozenset()


async def test_a_claim_and_a_cancellation_at_once_end_in_cancelled(subject: Subject) -> None:
    keys = [f"key-{number}" for number in range(25)]
    async with subject.store() as store:
        claims = (store.claim(claim_of(key)) for key in keys)
        await asyncio.gather(*claims, *(store.cancel(KIND, key, BY) for key in keys))
        assert {(await row_of(store, key)).status for key in keys} == {Status.CANCELLED}


async def test_a_cancelled_job_waits_for_nobody_and_is_forgotten_after_its_time(subject: Subject) -> None:
    async with subject.store() as store:
        await submitted(store)
        await store.cancel(KIND, "order-7", BY)
        await store.cancel(KIND, "never seen", BY)
        await subject.let_pass(5_000)
        assert await store.stuck(1_000) == {}
        assert await store.overdue({KIND}, 1_000, 10) == []
        assert await store.prune(10_000, 10) == 0
        assert await store.prune(4_000, 10) == 2


async def test_a_job_that_was_cancelled_before_it_was_due_is_known_until_its_message_comes(subject: Subject) -> None:
    async with subject.store() as store:
        await store.submit(replace(SUBMITTED, due_at=subject.now() + 60_000))
        await store.cancel(KIND, "order-7", BY)
        await subject.let_pass(59_000)
        assert await store.prune(4_000, 10) == 0
        assert await store.claim(claim_of()) == Done("cancelled")
        await subject.let_pass(6_000)
        assert await store.prune(4_000, 10) == 1


# Progress


async def test_progress_is_noted_and_nothing_else_changes(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(retry(await run_of(store, claim_of())))
        ref = await run_of(store, claim_of(attempt=2))
        before = await row_of(store)
        await store.progress([Mark(ref, 0.25, "page 1"), Mark(Ref(KIND, "never seen", 1), 0.5, "")])
        await store.progress([Mark(ref, 0.5, "page 2\x00\udce9")])
        assert await row_of(store) == replace(before, progress=0.5, progress_note="page 2\\x00\\udce9")
        assert await store.find(KIND, "never seen") is None


@pytest.mark.parametrize("change", [success, retry, failure, release])
async def test_a_run_that_is_over_makes_no_progress(subject: Subject, change: Any) -> None:
    async with subject.store() as store:
        ref = await run_of(store, claim_of())
        await store.progress([Mark(ref, 0.75, "almost")])
        await store.write(change(ref))
        before = await row_of(store)
        await store.progress([Mark(ref, 0.25, "late"), Mark(replace(ref, token=9), 0.25, "of nobody")])
        assert await row_of(store) == before


async def test_a_new_claim_begins_without_progress(subject: Subject) -> None:
    async with subject.store() as store:
        ref = await run_of(store, claim_of())
        await store.progress([Mark(ref, 0.75, "almost")])
        await store.write(retry(ref))
        await run_of(store, claim_of(attempt=2))
        row = await row_of(store)
        assert (row.progress, row.progress_note) == (None, "")
