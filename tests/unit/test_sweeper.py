"""The sweeper between in-memory twins: what it publishes, what it notes, what it forgets."""

import asyncio
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from consumer import sweeper
from consumer.core.decode import DecodeRules, decode
from consumer.core.delay import Ladder
from consumer.core.disposition import Settlement
from consumer.core.job import Fault, Job, Message
from consumer.core.letters import State
from consumer.core.outbox import FollowUp
from consumer.core.outcome import Failed, Interrupted, Outcome, Usage
from consumer.core.ports import Work
from consumer.core.row import Row, Status
from consumer.core.sweep import request
from consumer.core.topology import build
from consumer.metrics import Metrics
from consumer.sweeper import Sweeper, SweepRules
from schemas import headers
from schemas.codes import Code
from tests.contract.stores import claim_of, run_of, success
from tests.support.twins import START, World, message

GRACE, RETENTION = 300_000, 3_600_000


class Swept:
    """A world, and a sweeper of it."""

    def __init__(self, every: float = 60.0) -> None:
        self.world = World()
        self.metrics = Metrics(CollectorRegistry(), "default")
        rules = SweepRules(every, GRACE, RETENTION, frozenset({"k"}), DecodeRules())
        topology = build("jobs", "default", Ladder("jobs"), 100)
        self.sweeper = Sweeper(
            self.world.store, self.world.publisher, topology, self.metrics, rules, chance=lambda: 0.5
        )

    async def submit(self, *keys: str) -> None:
        for key in keys:
            row = Row("k", key, Status.PENDING, payload=b'{"n": 1}', submitted_at=START)
            job = decode(request(row), DecodeRules())
            assert isinstance(job, Job)
            await self.world.store.submit(replace(row, fingerprint=job.fingerprint))

    def stuck(self, status: str) -> float | None:
        return self.metrics.registry.get_sample_value("consumer_store_stuck_jobs", {"status": status})


async def test_a_submitted_job_whose_message_vanished_is_published_again_and_runs_once() -> None:
    swept = Swept()
    await swept.submit("a")
    swept.world.time.now += GRACE + 1
    await swept.sweeper.sweep()
    [parcel] = swept.world.publisher.confirmed
    assert (parcel.exchange, parcel.routing_key, parcel.target) == ("jobs", "default", "submit")
    for delivered in (parcel.message, message()):
        assert (await swept.world.deliver(delivered)).settled == [Settlement.ACK]
    assert len(swept.world.slots.executed) == 1
    assert (await swept.world.row()).status is Status.SUCCEEDED


async def test_a_job_that_died_with_its_owner_comes_back_as_the_same_attempt() -> None:
    swept = Swept()
    await swept.submit("a")
    await die_with(swept, message())
    swept.world.time.now += 60_000 + GRACE + 1
    await swept.sweeper.sweep()
    await swept.world.deliver(swept.world.publisher.confirmed[0].message)
    row = await swept.world.row()
    assert (row.status, row.attempt, row.crashes) == (Status.SUCCEEDED, 1, 1)


async def die_with(swept: Swept, delivered: Message) -> None:
    """Another owner claims the job and is never heard of again."""
    doomed = World(lambda _: Interrupted("withdrawn"), "them", swept.world.store.inner)
    doomed.store.away = ["write", "write"]
    await doomed.deliver(delivered)


def rejected(_: Work) -> Outcome:
    return Failed(Fault(Code.REJECTED, "Reject", "no such thing"), Usage(), retryable=False)


async def test_a_job_is_not_published_again_at_every_round() -> None:
    swept = Swept()
    await swept.submit("a")
    for _ in range(20):
        swept.world.time.now += 60_000
        await swept.sweeper.sweep()
    assert len(swept.world.publisher.confirmed) == 2


async def test_more_jobs_than_fit_into_a_batch_are_all_published_in_one_round() -> None:
    swept = Swept()
    keys = [f"key-{number}" for number in range(2 * sweeper.PUBLISHED_AT_ONCE + 3)]
    await swept.submit(*keys)
    swept.world.time.now += GRACE + 1
    await swept.sweeper.sweep()
    assert [parcel.message.message_id for parcel in swept.world.publisher.confirmed] == keys


async def test_what_the_broker_does_not_take_is_published_at_the_next_round_and_the_rest_goes_on() -> None:
    swept = Swept()
    await swept.submit("a", "b")
    await swept.world.deliver(message("done"))
    swept.world.time.now += RETENTION + 10
    swept.world.publisher.failing = ["timeout"]
    with capture_logs() as lines:
        await swept.sweeper.sweep()
    assert [line["step"] for line in lines if line["event"] == "sweep not finished"] == ["publish_again"]
    assert await swept.world.store.find("k", "done") is None
    assert swept.world.publisher.confirmed == []
    await swept.sweeper.sweep()
    assert len(swept.world.publisher.confirmed) == 2


async def test_the_payload_of_a_corrected_job_is_not_published_again() -> None:
    """A correction comes as a message, and leaves in the row the payload that failed."""
    swept = Swept()
    await swept.submit("a")
    swept.world.slots.run = rejected
    await swept.world.deliver(message())
    await die_with(swept, message(body=b'{"n": 2}'))
    swept.world.publisher.confirmed.clear()
    swept.world.time.now += 60_000 + GRACE + 1
    await swept.sweeper.sweep()
    assert swept.world.publisher.confirmed == []
    assert swept.stuck("processing") == 1


async def test_jobs_of_other_queues_are_left_to_their_own_daemons() -> None:
    swept = Swept()
    await swept.world.store.submit(Row("of another queue", "a", Status.PENDING, payload=b"1"))
    swept.world.time.now += GRACE + 1
    await swept.sweeper.sweep()
    assert swept.world.publisher.confirmed == []


async def test_the_stuck_are_shown_and_told_in_one_line_until_there_are_none() -> None:
    swept = Swept()
    await swept.submit("a", "b")
    swept.world.time.now += GRACE + 1
    with capture_logs() as lines:
        await swept.sweeper.sweep()
    assert {**lines[0], "event": "jobs are stuck", "pending": 2} == lines[0]
    assert [swept.stuck(status) for status in ("pending", "processing", "retrying")] == [2, 0, 0]
    for key in "ab":
        await swept.world.deliver(message(key))
    await swept.sweeper.sweep()
    assert swept.stuck("pending") == 0


async def test_follow_ups_that_should_be_on_the_broker_are_counted() -> None:
    swept = Swept()
    ref = await run_of(swept.world.store, claim_of())
    asked = (FollowUp("k", "now", b"1", None, 0), FollowUp("k", "later", b"1", "mail", 60_000))
    await swept.world.store.write(replace(success(ref), follow_ups=asked))
    await swept.sweeper.sweep()
    registry = swept.metrics.registry
    assert registry.get_sample_value("consumer_store_unsent_follow_ups", {"queue": "default"}) == 1


async def test_a_store_that_is_away_ends_no_sweeper() -> None:
    swept = Swept(every=0.0)
    swept.world.store.away = ["stuck"]
    await swept.submit("a")
    swept.world.time.now += GRACE + 1
    keeping = asyncio.create_task(swept.sweeper.keep())
    for _ in range(50):
        await asyncio.sleep(0)
    keeping.cancel()
    assert len(swept.world.publisher.confirmed) == 1


async def test_many_finished_jobs_are_forgotten_in_batches_with_room_for_others_in_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeper, "PRUNED_AT_ONCE", 10)
    monkeypatch.setattr(sweeper, "BETWEEN_BATCHES", 0.0)
    swept = Swept()
    for number in range(35):
        await swept.world.deliver(message(f"key-{number}"))
    swept.world.time.now += RETENTION + 10
    with capture_logs() as lines:
        await swept.sweeper.sweep()
    assert [line["count"] for line in lines if line["event"] == "rows pruned"] == [35]


async def test_pruning_ends_with_its_time_and_goes_on_at_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeper, "PRUNED_AT_ONCE", 1)
    swept = Swept(every=0.0)
    for key in "abc":
        await swept.world.deliver(message(key))
    swept.world.time.now += RETENTION + 10
    for left in (2, 1, 0):
        await swept.sweeper.sweep()
        rows = [await swept.world.store.find("k", key) for key in "abc"]
        assert sum(row is not None for row in rows) == left


async def test_dead_letters_that_are_gone_are_forgotten_after_the_retention_and_the_others_never() -> None:
    swept = Swept()
    for _ in range(2):
        await swept.world.deliver(message(None))
    letters = swept.world.store.letters
    gone, dead = [parcel.message.headers[headers.DEAD_ID] for parcel in swept.world.publisher.confirmed]
    await letters.mark([gone], State.PURGED, swept.world.time.now)
    for waited, left in ((RETENTION - 1, {gone, dead}), (RETENTION + 1, {dead})):
        swept.world.time.now = START + waited
        await swept.sweeper.sweep()
        assert {letter.id for letter in await letters.letters([gone, dead])} == left
