"""What a claim answers on real rows, for all three stores: the claim table of the design, in its order."""

from typing import Any

import pytest

from consumer.core.claim import Conflict, Done, Run, Spent, Wait, decide
from consumer.core.row import Ref, Row, Status
from tests.contract.stores import KIND, LEASE, Subject, claim_of, failure, release, retry, row_of, run_of, success


async def test_an_unknown_job_runs_at_the_attempt_of_its_header(subject: Subject) -> None:
    async with subject.store() as store:
        assert await store.claim(claim_of("a")) == Run(1, 1)
        assert await store.claim(claim_of("b", attempt=3, generation=2)) == Run(1, 3, generation=2)


async def test_an_unknown_job_gets_the_very_row_that_the_claim_table_says(subject: Subject) -> None:
    request = claim_of(attempt=3, generation=2, submitted_at=5, deadline=2**53)
    async with subject.store() as store:
        await store.claim(request)
        row = await row_of(store)
        assert row.started_at is not None
        assert row == decide(None, request, row.started_at)[1]


async def test_a_submitted_job_runs(subject: Subject) -> None:
    async with subject.store() as store:
        await store.submit(Row(KIND, "order-7", Status.PENDING, fingerprint=b"\x00payload"))
        assert await store.claim(claim_of()) == Run(1, 1)


async def test_a_released_job_runs_again_at_the_same_attempt(subject: Subject) -> None:
    async with subject.store() as store:
        assert await store.write(release(await run_of(store, claim_of(attempt=2))))
        row = await row_of(store)
        assert (row.status, row.owner, row.lease_until, row.attempt) == (Status.PENDING, None, None, 2)
        assert await store.claim(claim_of(owner="them", attempt=2)) == Run(2, 2)


async def test_another_payload_after_a_failure_runs_as_a_new_generation_and_the_failure_is_remembered(
    subject: Subject,
) -> None:
    async with subject.store() as store:
        assert await store.write(failure(await run_of(store, claim_of())))
        assert await store.claim(claim_of(fingerprint=b"corrected")) == Run(2, 1, generation=1)
        row = await row_of(store)
        assert (row.status, row.fingerprint, row.fault) == (Status.PROCESSING, b"corrected", None)
        assert [(past.generation, past.fingerprint) for past in row.history] == [(0, b"\x00payload".hex())]


async def test_the_old_payload_of_a_corrected_job_is_stale(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(failure(await run_of(store, claim_of())))
        await store.write(failure(await run_of(store, claim_of(fingerprint=b"corrected"))))
        assert await store.claim(claim_of()) == Done("stale")


async def test_a_correction_whose_owner_died_is_taken_over_by_its_own_message(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(failure(await run_of(store, claim_of())))
        await run_of(store, claim_of(owner="them", fingerprint=b"corrected"))
        await subject.end_leases()
        assert await store.claim(claim_of(fingerprint=b"corrected")) == Run(3, 1, generation=1, crashes=1)


@pytest.mark.parametrize("change", [None, retry, success], ids=["processing", "retrying", "succeeded"])
async def test_another_payload_in_any_other_state_is_a_conflict_and_leaves_the_row_alone(
    subject: Subject, change: Any
) -> None:
    async with subject.store() as store:
        ref = await run_of(store, claim_of())
        if change:
            await store.write(change(ref))
        before = await row_of(store)
        assert await store.claim(claim_of(owner="them", fingerprint=b"another")) == Conflict()
        assert await row_of(store) == before


async def test_a_succeeded_job_is_a_duplicate_for_every_delivery(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(success(await run_of(store, claim_of())))
        before = await row_of(store)
        for delivery in (claim_of(), claim_of(attempt=2), claim_of(generation=3), claim_of(owner="them")):
            assert await store.claim(delivery) == Done("succeeded")
        assert await row_of(store) == before


async def test_a_failed_job_is_a_duplicate_until_it_is_redriven(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(failure(await run_of(store, claim_of(attempt=3))))
        assert await store.claim(claim_of(attempt=3)) == Done("failed")
        assert await store.claim(claim_of(generation=1)) == Run(2, 1, generation=1)


async def test_a_cancelled_job_is_done(subject: Subject) -> None:
    async with subject.store() as store:
        await store.submit(Row(KIND, "order-7", Status.CANCELLED, fingerprint=b"\x00payload"))
        assert await store.claim(claim_of()) == Done("cancelled")


async def test_while_a_retry_waits_older_copies_are_stale_and_the_retry_itself_runs(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(retry(await run_of(store, claim_of())))
        assert await store.claim(claim_of(attempt=1)) == Done("stale")
        assert await store.claim(claim_of(attempt=2)) == Run(2, 2)


async def test_a_retry_whose_record_was_lost_waits_for_the_lease_and_then_runs(subject: Subject) -> None:
    async with subject.store() as store:
        await run_of(store, claim_of(owner="them"))
        assert isinstance(await store.claim(claim_of(attempt=2)), Wait)
        await subject.end_leases()
        assert await store.claim(claim_of(attempt=2)) == Run(2, 2)


async def test_a_retry_whose_record_we_lost_runs_at_once_since_its_run_has_left_this_process(subject: Subject) -> None:
    async with subject.store() as store:
        await run_of(store, claim_of())
        assert await store.claim(claim_of(attempt=2)) == Run(2, 2)


async def test_a_delivery_waits_for_the_lease_of_another_owner(subject: Subject) -> None:
    async with subject.store() as store:
        await run_of(store, claim_of(owner="them"))
        answer = await store.claim(claim_of())
        assert isinstance(answer, Wait)
        assert 0 < answer.milliseconds <= LEASE


async def test_owners_that_die_are_charged_until_the_job_runs_alone_and_then_is_spent(subject: Subject) -> None:
    async with subject.store() as store:
        answers = [await store.claim(claim_of(owner="pod-0"))]
        for pod in range(1, 4):
            await subject.end_leases()
            answers.append(await store.claim(claim_of(owner=f"pod-{pod}")))
        assert answers == [
            Run(1, 1),
            Run(2, 1, crashes=1),
            Run(3, 1, crashes=2, alone=True),
            Spent(4, 1, crashes=3),
        ]
        assert await store.write(failure(Ref(KIND, "order-7", 4)))


async def test_a_claim_whose_write_we_lost_runs_again_uncharged(subject: Subject) -> None:
    async with subject.store() as store:
        await run_of(store, claim_of())
        assert await store.claim(claim_of()) == Run(2, 1, crashes=0)


async def test_a_retry_starts_without_the_crashes_of_the_attempt_before(subject: Subject) -> None:
    async with subject.store() as store:
        await run_of(store, claim_of(owner="them"))
        await subject.end_leases()
        await store.write(retry(await run_of(store, claim_of())))
        assert await store.claim(claim_of(attempt=2)) == Run(3, 2, crashes=0)
