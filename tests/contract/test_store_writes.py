"""Batches, writes, leases and finding, for all three stores."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from consumer.core.claim import Done, Run, Wait
from consumer.core.job import Fault
from consumer.core.row import HISTORY_LIMIT, Change, Ref, Row, Status
from consumer.store.change import apply
from schemas.codes import Code
from tests.contract.stores import (
    FAULT,
    KIND,
    LEASE,
    Subject,
    claim_of,
    failure,
    release,
    retry,
    row_of,
    run_of,
    success,
)


async def test_two_claims_of_one_key_at_once_are_answered_one_after_the_other(subject: Subject) -> None:
    async with subject.store() as store:
        ours, theirs, other = await asyncio.gather(
            *map(store.claim, [claim_of(), claim_of(owner="them"), claim_of("other")])
        )
        assert (ours, other) == (Run(1, 1), Run(1, 1))
        assert isinstance(theirs, Wait)


async def test_one_batch_may_hold_every_kind_of_answer(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(success(await run_of(store, claim_of("done"))))
        await store.write(retry(await run_of(store, claim_of("retrying"))))
        await run_of(store, claim_of("running", owner="them"))
        keys = ["new", "done", "retrying", "running", "also new"]
        answers = await asyncio.gather(*(store.claim(claim_of(key, attempt=2)) for key in keys))
        assert answers[:3] == [Run(1, 2), Done("succeeded"), Run(2, 2)]
        assert isinstance(answers[3], Wait)
        assert answers[4] == Run(1, 2)


async def test_one_batch_may_hold_every_kind_of_write(subject: Subject) -> None:
    async with subject.store() as store:
        keys = ["a", "b", "c", "d", "e"]
        refs = await asyncio.gather(*(run_of(store, claim_of(key)) for key in keys))
        changes = [
            success(refs[0]),
            retry(refs[1]),
            failure(refs[2]),
            release(refs[3]),
            success(replace(refs[4], token=9)),
        ]
        assert await asyncio.gather(*map(store.write, changes)) == [True, True, True, True, False]
        states = [(await row_of(store, key)).status for key in keys]
        assert states == ["succeeded", "retrying", "failed", "pending", "processing"]


async def test_a_thousand_claims_at_once_each_run_once(subject: Subject) -> None:
    async with subject.store() as store:
        answers = await asyncio.gather(*(store.claim(claim_of(f"key-{number}")) for number in range(1000)))
        assert answers == [Run(1, 1)] * 1000


# Writes


CHANGES = {
    "succeeded": Change(
        Ref(KIND, "order-7", 2),
        Status.SUCCEEDED,
        result=b"[1]",
        started_at=5,
        finished_at=9,
        cpu_seconds=0.25,
        peak_memory=2**40,
    ),
    "retrying": Change(Ref(KIND, "order-7", 2), Status.RETRYING, fault=FAULT, due_at=77, finished_at=9),
    "failed": Change(Ref(KIND, "order-7", 2), Status.FAILED, fault=FAULT, finished_at=9, cpu_seconds=1.5),
    "released": Change(Ref(KIND, "order-7", 2), Status.PENDING),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_write_leaves_the_very_row_that_the_rules_say(subject: Subject, change: Change) -> None:
    async with subject.store() as store:
        await store.write(retry(await run_of(store, claim_of(submitted_at=3, deadline=2**53))))
        await run_of(store, claim_of(attempt=2))
        before = await row_of(store)
        assert await store.write(change)
        after = await row_of(store)
        now = after.due_at or 0  # what is given back may run from then on
        assert after == apply(before, change, now)[1]


async def test_a_result_without_times_gets_those_of_the_store(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(success(await run_of(store, claim_of())))
        row = await row_of(store)
        assert row.first_seen_at is not None
        assert row.started_at is not None
        assert row.finished_at is not None
        assert row.first_seen_at == row.started_at <= row.finished_at


@pytest.mark.parametrize("change", [success, retry, failure, release])
async def test_a_write_under_an_old_token_changes_nothing(subject: Subject, change: Any) -> None:
    async with subject.store() as store:
        stale = await run_of(store, claim_of(owner="them"))
        await subject.end_leases()
        await run_of(store, claim_of())
        before = await row_of(store)
        assert not await store.write(change(stale))
        assert await row_of(store) == before


async def test_a_write_for_an_unknown_job_makes_no_row(subject: Subject) -> None:
    async with subject.store() as store:
        for change in (success, retry, failure, release):
            assert not await store.write(change(Ref(KIND, "order-7", 1)))
        assert await store.find(KIND, "order-7") is None


@pytest.mark.parametrize("change", [success, retry, failure, release])
async def test_the_same_write_again_is_true_and_changes_nothing(subject: Subject, change: Any) -> None:
    async with subject.store() as store:
        ref = await run_of(store, claim_of())
        assert await store.write(change(ref))
        before = await row_of(store)
        assert await store.write(change(ref))
        assert await row_of(store) == before


async def test_a_success_is_final(subject: Subject) -> None:
    async with subject.store() as store:
        ref = await run_of(store, claim_of())
        await store.write(success(ref))
        before = await row_of(store)
        for change in (retry(ref), failure(ref), release(ref)):
            assert not await store.write(change)
        assert await store.write(success(ref, b'"another result"'))
        assert await row_of(store) == before


async def test_history_is_kept_up_to_its_limit(subject: Subject) -> None:
    async with subject.store() as store:
        for attempt in range(1, HISTORY_LIMIT + 3):
            await store.write(retry(await run_of(store, claim_of(attempt=attempt))))
        history = (await row_of(store)).history
        assert [past.attempt for past in history] == list(range(3, HISTORY_LIMIT + 3))


@pytest.mark.parametrize(
    "result",
    [
        b'{"text": "a\\u0000b",  "big":100000000000000000000, "tiny":1E-400,"same":1,"same":2}',
        '"gr\u00fc\u00dfe \U0001f389 \\ud83d"'.encode(),
        b" null\n",
        b"12345678901234567890.10",
        b'"' + b"x" * 1_000_000 + b'"',
    ],
    ids=["odd json", "unicode", "spaces", "number", "a megabyte"],
)
async def test_a_result_comes_back_byte_for_byte(subject: Subject, result: bytes) -> None:
    async with subject.store() as store:
        await store.write(success(await run_of(store, claim_of()), result))
        assert (await row_of(store)).result == result


async def test_an_error_that_databases_refuse_is_stored_visibly(subject: Subject) -> None:
    odd = Fault(Code.REJECTED, "ValueError", "a\x00b", "caf\udce9 ü")
    async with subject.store() as store:
        assert await store.write(failure(await run_of(store, claim_of()), odd))
        row = await row_of(store)
        assert row.fault == Fault(Code.REJECTED, "ValueError", "a\\x00b", "caf\\udce9 ü")
        assert row.history[0].message == "a\\x00b"


# Leases, finding, submitting


async def test_a_renewed_lease_holds_and_a_lost_claim_is_told(subject: Subject) -> None:
    async with subject.store() as store:
        held, written = [await run_of(store, claim_of(key)) for key in ("held", "written")]
        await store.write(success(written))
        lost, unknown = Ref(KIND, "held", 9), Ref(KIND, "never", 1)
        before = (await row_of(store, "held")).lease_until
        assert before is not None
        assert await store.renew([held, written, lost, unknown], 10 * LEASE) == {written, lost, unknown}
        after = (await row_of(store, "held")).lease_until
        assert after is not None
        assert after > before + 8 * LEASE
        assert await store.find(KIND, "never") is None


async def test_renewing_changes_nothing_but_the_lease(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(retry(await run_of(store, claim_of())))
        ref = await run_of(store, claim_of(attempt=2))
        before = await row_of(store)
        await store.renew([ref], LEASE)
        assert replace(await row_of(store), lease_until=before.lease_until) == before


async def test_a_submitted_row_is_stored_whole_with_the_time_of_the_store(subject: Subject) -> None:
    row = Row(KIND, "order-7", Status.PENDING, fingerprint=b"\xff\x00", payload=b'{"a":\x00}', submitted_at=3)
    async with subject.store() as store:
        stored = await store.submit(row)
        assert stored.first_seen_at is not None
        assert stored == replace(row, first_seen_at=stored.first_seen_at)
        assert await store.find(KIND, "order-7") == stored


async def test_submitting_again_returns_the_row_that_is_there(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(success(await run_of(store, claim_of())))
        there = await row_of(store)
        assert await store.submit(Row(KIND, "order-7", Status.PENDING, payload=b"late")) == there
        assert await row_of(store) == there


async def test_a_payload_stays_with_its_row_through_the_life_of_the_job(subject: Subject) -> None:
    async with subject.store() as store:
        await store.submit(Row(KIND, "order-7", Status.PENDING, payload=b"{}", submitted_at=3, deadline=2**53))
        await store.write(retry(await run_of(store, claim_of())))
        await store.write(success(await run_of(store, claim_of(attempt=2))))
        row = await row_of(store)
        assert (row.payload, row.submitted_at, row.deadline) == (b"{}", 3, 2**53)


async def test_kinds_and_keys_don_t_mix(subject: Subject) -> None:
    odd = "ключ \U0001f511 ' \" % _ \\ " + "k" * 200
    async with subject.store() as store:
        deliveries = [claim_of("a"), claim_of("a", kind="mail.sent"), claim_of(odd), claim_of("A")]
        answers = await asyncio.gather(*map(store.claim, deliveries))
        assert answers == [Run(1, 1)] * 4
        assert (await row_of(store, odd)).key == odd
        assert await store.find("mail", "a") is None


async def test_a_store_that_works_passes_its_probe(subject: Subject) -> None:
    async with subject.store() as store:
        await store.probe()
        await store.probe()


async def test_closing_waits_for_what_is_in_flight(subject: Subject) -> None:
    async with subject.store() as store:
        tasks = [asyncio.ensure_future(store.claim(claim_of(f"key-{number}"))) for number in range(300)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*tasks) == [Run(1, 1)] * 300
