"""The relay between in-memory twins: what it sends, what it forgets, what it leaves for later."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from consumer import relay as module
from consumer.core.delay import Ladder
from consumer.core.outbox import FollowUp
from consumer.core.ports import Parcel
from consumer.core.row import Change, Ref, Status
from consumer.core.topology import build
from consumer.relay import AT_ONCE, LEASE, Relay
from tests.contract.stores import claim_of, run_of
from tests.support.twins import TestPublisher, World

FIRST, SECOND = (FollowUp("k", f"a/{number}", b"1", None, 0) for number in (1, 2))


class Related:
    """A world, and a relay of it. `TestPublisher.failing` fails the next publishes."""

    def __init__(self, publisher: TestPublisher | None = None) -> None:
        self.world = World()
        self.publisher = publisher or self.world.publisher
        topology = build("jobs", "default", Ladder("jobs"), 100)
        self.relay = Relay(self.world.store, self.publisher, topology, self.world.time, lambda: 0.0)

    async def post(self, *follow_ups: FollowUp, key: str = "a") -> None:
        ref = await run_of(self.world.store, claim_of(key))
        assert await self.world.store.write(
            Change(Ref(ref.kind, key, ref.token), Status.SUCCEEDED, result=b"1", follow_ups=follow_ups)
        )

    @property
    def sent(self) -> list[str | None]:
        return [parcel.message.message_id for parcel in self.publisher.confirmed]


@asynccontextmanager
async def keeping(relay: Relay) -> AsyncIterator[None]:
    task = asyncio.create_task(relay.keep())
    try:
        yield
    finally:
        task.cancel()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "wait_seconds", lambda *_: 0.0)


async def test_follow_ups_are_sent_once_and_forgotten() -> None:
    related = Related()
    await related.post(FIRST, SECOND)
    await related.relay.send_all()
    related.world.time.now += 100 * LEASE
    await related.relay.send_all()
    assert related.sent == ["a/1", "a/2"]


async def test_more_than_fit_into_a_batch_are_all_sent_in_one_round() -> None:
    related = Related()
    keys = [f"a/{number}" for number in range(2 * AT_ONCE + 3)]
    await related.post(*(FollowUp("k", key, b"1", None, 0) for key in keys))
    await related.relay.send_all()
    assert related.sent == keys


async def test_a_result_with_follow_ups_is_heard_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 3600.0)
    related = Related(Heard())
    async with keeping(related.relay):
        await related.post(FIRST)
        related.relay.kick()
        assert isinstance(related.publisher, Heard)
        await related.publisher.heard.wait()
    assert related.sent == ["a/1"]


async def test_what_a_crash_left_behind_is_found_without_being_told(monkeypatch: pytest.MonkeyPatch) -> None:
    related = Related(Heard())
    await related.post(FIRST)
    async with keeping(related.relay):
        assert isinstance(related.publisher, Heard)
        await related.publisher.heard.wait()
        monkeypatch.setattr(module, "EVERY", 0.0)
        related.publisher.heard.clear()
        related.relay.kick()
        await related.post(SECOND, key="b")
        await related.publisher.heard.wait()
    assert related.sent == ["a/1", "a/2"]


async def test_a_broker_that_is_away_is_waited_for() -> None:
    related = Related()
    await related.post(FIRST, SECOND)
    related.publisher.failing = ["error", "timeout", "error", "error"]
    await related.relay.send_all()
    assert sorted(key or "" for key in related.sent) == ["a/1", "a/2"]


@pytest.mark.parametrize("refusal", ["returned", "nacked"])
async def test_what_no_queue_takes_is_told_and_tried_again_later_and_holds_up_no_other(refusal: str) -> None:
    related = Related()
    await related.post(FollowUp("k", "lost", b"1", "nowhere", 0), FIRST)
    related.publisher.failing = [refusal]
    with capture_logs() as lines:
        await related.relay.send_all()
    assert related.sent == ["a/1"]
    assert [(line["log_level"], line["kind"], line["key"], line["queue"]) for line in lines] == [
        ("error", "k", "lost", "nowhere")
    ]
    related.world.time.now += LEASE
    await related.relay.send_all()
    assert related.sent == ["a/1", "lost"]


async def test_what_can_not_be_written_to_the_wire_holds_up_no_other() -> None:
    related = Related(Choking())
    await related.post(FollowUp("k", "bad", b"1", None, 0), FIRST)
    with capture_logs() as lines:
        await related.relay.send_all()
    assert related.sent == ["a/1"]
    assert [line["error"] for line in lines] == ["ValueError, which is a bug of ours"]


async def test_a_store_that_goes_away_costs_no_follow_up_and_doubles_none() -> None:
    related = Related()
    await related.post(FIRST)
    for call in ("outbox", "sent"):
        related.world.store.away = [call]
        with capture_logs() as lines:
            await related.relay.send_all()
        assert [line["event"] for line in lines] == ["follow-ups wait for the store"]
    assert related.sent == ["a/1"]
    related.world.time.now += 100 * LEASE
    await related.relay.send_all()
    assert related.sent == ["a/1"]


class Heard(TestPublisher):
    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    async def publish(self, parcel: Parcel) -> None:
        await super().publish(parcel)
        self.heard.set()


class Choking(TestPublisher):
    async def publish(self, parcel: Parcel) -> None:
        if parcel.message.message_id == "bad":
            raise ValueError("a short string has at most 255 bytes")
        await super().publish(parcel)
