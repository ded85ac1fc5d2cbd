"""What the sweeper asks of a store, for all three: who waits in vain, who is published again, who is forgotten."""

import asyncio

from consumer.core.claim import Run
from consumer.core.ports import Store
from consumer.core.row import Ref, Row, Status
from consumer.core.sweep import is_overdue, is_stuck
from tests.contract.stores import KIND, LEASE, Subject, claim_of, failure, release, retry, row_of, run_of, success

GRACE = 300_000
KINDS = frozenset({KIND})


async def submitted(store: Store, *keys: str) -> None:
    for key in keys:
        await store.submit(Row(KIND, key, Status.PENDING, fingerprint=b"\x00payload", payload=b"{}", submitted_at=3))


async def overdue(store: Store, kinds: frozenset[str] = KINDS, limit: int = 100) -> list[str]:
    return [row.key for row in await store.overdue(kinds, GRACE, limit)]


async def one_of_each(store: Store, due_at: int) -> None:
    """Rows in every state that there is, each with a payload."""
    states = {"succeeded": success, "retrying": lambda ref: retry(ref, due_at), "failed": failure, "released": release}
    await submitted(store, "pending", "processing", *states)
    for key, change in states.items():
        await store.write(change(await run_of(store, claim_of(key))))
    await run_of(store, claim_of("processing"))


async def test_what_has_just_been_submitted_claimed_given_back_or_due_is_not_stuck(subject: Subject) -> None:
    async with subject.store() as store:
        await one_of_each(store, due_at=subject.now())
        assert await store.stuck(GRACE) == {}
        assert await overdue(store) == []


async def test_what_nobody_came_for_is_counted_by_status_and_overdue(subject: Subject) -> None:
    async with subject.store() as store:
        await one_of_each(store, due_at=subject.now())
        await subject.let_pass(GRACE + LEASE + 5_000)
        assert await store.stuck(GRACE) == {Status.PENDING: 2, Status.RETRYING: 1, Status.PROCESSING: 1}
        assert sorted(await overdue(store)) == ["pending", "processing", "released", "retrying"]


async def test_a_running_job_whose_lease_is_renewed_is_not_stuck(subject: Subject) -> None:
    async with subject.store() as store:
        ref = await run_of(store, claim_of())
        await subject.let_pass(GRACE + LEASE + 5_000)
        await store.renew([ref], LEASE)
        assert await store.stuck(GRACE) == {}


async def test_a_retry_that_is_not_due_is_not_stuck_however_old_its_job_is(subject: Subject) -> None:
    async with subject.store() as store:
        await store.write(retry(await run_of(store, claim_of()), due_at=subject.now() + 10 * GRACE))
        await subject.let_pass(9 * GRACE)
        assert await store.stuck(GRACE) == {}


async def test_every_store_counts_and_chooses_as_the_rules_say_of_each_row(subject: Subject) -> None:
    async with subject.store() as store:
        await one_of_each(store, due_at=subject.now() + GRACE)
        for step in range(6):
            await submitted(store, f"later-{step}")
            await subject.let_pass(GRACE // 2 + 7_000 + 1_111 * step)
            rows = [await row_of(store, key) for key in ("pending", "processing", "succeeded", "retrying", "failed")]
            rows += [await row_of(store, f"later-{number}") for number in range(step + 1)]
            rows.append(await row_of(store, "released"))
            now = subject.now()
            wanted = {row.key for row in rows if is_overdue(row, GRACE, now)}
            assert set(await overdue(store)) == wanted
            assert sum((await store.stuck(GRACE)).values()) == sum(is_stuck(row, GRACE, now) for row in rows)
            swept = [Ref(row.kind, row.key, row.token) for row in rows if row.key in wanted and step % 2]
            await store.swept(swept)


async def test_what_was_swept_is_overdue_again_when_it_has_waited_twice_as_long(subject: Subject) -> None:
    async with subject.store() as store:
        await submitted(store, "a")
        await subject.let_pass(GRACE + 1_000)
        await store.swept([Ref(KIND, "a", 0)])
        await subject.let_pass(GRACE)
        assert await overdue(store) == []
        assert await store.stuck(GRACE) == {Status.PENDING: 1}
        await subject.let_pass(2_000)
        assert await overdue(store) == ["a"]


async def test_noting_a_sweep_changes_nothing_else_and_nothing_of_a_job_that_was_claimed_meanwhile(
    subject: Subject,
) -> None:
    async with subject.store() as store:
        await one_of_each(store, due_at=subject.now())
        before = await row_of(store, "retrying")
        await store.swept([Ref(KIND, "retrying", 1), Ref(KIND, "processing", 0), Ref(KIND, "unknown", 1)])
        after = await row_of(store, "retrying")
        assert after.swept_at is not None
        assert (await row_of(store, "processing")).swept_at is None
        assert [after.status, after.payload, after.history] == [before.status, before.payload, before.history]
        assert await store.find(KIND, "unknown") is None


async def test_a_job_that_came_back_runs_as_if_it_had_never_been_away(subject: Subject) -> None:
    async with subject.store() as store:
        await submitted(store, "a")
        await store.swept([Ref(KIND, "a", 0)])
        assert await store.claim(claim_of("a")) == Run(1, 1)
        assert (await row_of(store, "a")).swept_at is None


async def test_only_jobs_with_a_payload_and_of_our_kinds_are_published_again_the_oldest_first(subject: Subject) -> None:
    async with subject.store() as store:
        await store.submit(Row(KIND, "without", Status.PENDING))
        await store.submit(Row("of another queue", "a", Status.PENDING, payload=b"{}"))
        for key in ("old", "older"):
            await submitted(store, key)
            await subject.let_pass(1_000)
        await subject.let_pass(GRACE)
        assert await overdue(store) == ["old", "older"]
        assert await overdue(store, limit=1) == ["old"]
        assert await overdue(store, kinds=frozenset()) == []


async def test_an_overdue_row_comes_whole(subject: Subject) -> None:
    async with subject.store() as store:
        await one_of_each(store, due_at=subject.now())
        await subject.let_pass(GRACE + LEASE + 5_000)
        for row in await store.overdue(KINDS, GRACE, 100):
            assert row == await row_of(store, row.key)
            assert (row.payload, row.submitted_at) == (b"{}", 3)


async def test_finished_jobs_are_forgotten_after_their_time_and_no_others(subject: Subject) -> None:
    async with subject.store() as store:
        await one_of_each(store, due_at=subject.now())
        assert await store.prune(GRACE, 100) == 0
        await subject.let_pass(GRACE + 1_000)
        await store.write(success(await run_of(store, claim_of("new"))))
        assert await store.prune(GRACE, 100) == 2
        assert [await store.find(KIND, key) for key in ("succeeded", "failed")] == [None, None]
        assert await store.claim(claim_of("succeeded")) == Run(1, 1)
        for key in ("pending", "processing", "retrying", "released", "new"):
            assert await store.find(KIND, key)


async def test_a_batch_of_pruning_is_no_larger_than_its_limit(subject: Subject) -> None:
    async with subject.store() as store:
        refs = await asyncio.gather(*(run_of(store, claim_of(f"key-{number}")) for number in range(25)))
        await asyncio.gather(*(store.write(success(ref)) for ref in refs))
        await subject.let_pass(1_000)
        assert [await store.prune(500, 10) for _ in range(4)] == [10, 10, 5, 0]
