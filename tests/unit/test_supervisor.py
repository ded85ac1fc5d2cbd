"""What the supervisor does about its sessions and its store, between twins."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from consumer import supervisor as module
from consumer.core.errors import BrokerRefused, BrokerUnavailable, SettingsError, StoreUnavailable, TopologyError
from consumer.supervisor import Supervisor


class Ending:
    def __init__(self, reason: str, detail: str) -> None:
        self.reason, self.detail = reason, detail


class TwinSession:
    consumer: str | None = None

    def __init__(self, told: list[str]) -> None:
        self._told = told
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    async def depths(self, _: Sequence[str]) -> Mapping[str, Any]:
        return {}

    async def blocked(self) -> bool:
        return False

    async def cancel(self) -> None:
        self._told.append("cancel")

    async def close(self) -> None:
        self._told.append("close")

    def end(self, reason: str, detail: str) -> None:
        if not self.ended.done():
            self.ended.set_result(Ending(reason, detail))


class Stage:
    """Everything around the supervisor; `told` is what happened, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.changed = asyncio.Event()
        self.refusals: list[Exception] = []
        self.store_failures = 0
        self.sessions: list[TwinSession] = []
        self.supervisor = Supervisor(self.open, self.consume, self.probe, self, self, lambda: 0.0)

    async def open(self) -> TwinSession:
        if self.refusals:
            raise self.refusals.pop(0)
        self.sessions.append(TwinSession(self.told))
        return self.sessions[-1]

    async def consume(self, _: TwinSession, careful: bool) -> None:
        self.tell("consume one at a time" if careful else "consume")

    async def probe(self) -> None:
        if self.store_failures:
            self.store_failures -= 1
            raise StoreUnavailable("the store is away")

    def pause(self) -> None:
        self.tell("door closed")

    def resume(self) -> None:
        self.tell("door open")

    def connected(self) -> None:
        self.tell("connected")

    def consuming(self) -> None:
        self.tell("consuming")

    def paused(self, why: str) -> None:
        self.tell(f"paused: {why}")

    def blocked(self, blocked: bool) -> None:
        """Nothing is blocked here."""

    def session_ended(self, reason: str, detail: str) -> None:
        self.tell(f"ended: {reason}")

    def tell(self, what: str) -> None:
        self.told.append(what)
        self.changed.set()

    async def heard(self, what: str, times: int = 1) -> None:
        while self.told.count(what) < times:
            self.changed.clear()
            await self.changed.wait()


@asynccontextmanager
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(module, "SLOW_START", 0.01)
    play = Stage()
    running = asyncio.create_task(play.supervisor.run())
    yield play
    play.supervisor.stop()
    await running


async def test_it_connects_probes_opens_the_door_and_consumes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(monkeypatch) as play:
        await play.heard("consuming")
        assert play.told == ["connected", "door open", "consume", "consuming"]


async def test_an_outage_of_the_store_closes_the_door_and_ends_with_a_slow_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with stage(monkeypatch) as play:
        await play.heard("consuming")
        play.store_failures = 1
        play.supervisor.trip(StoreUnavailable("gone"))
        await play.heard("consuming", 3)
        assert play.told[4:] == [
            "paused: gone",
            "cancel",
            "door closed",
            "paused: the store is away",
            "door open",
            "consume one at a time",
            "consuming",
            "cancel",
            "door open",
            "consume",
            "consuming",
        ]


async def test_a_session_that_ends_is_closed_and_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(monkeypatch) as play:
        await play.heard("consuming")
        play.sessions[0].end("closed", "by a test")
        await play.heard("consuming", 2)
        assert play.told[4:] == [
            "door closed",
            "ended: closed",
            "close",
            "connected",
            "door open",
            "consume",
            "consuming",
        ]


async def test_a_broker_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(monkeypatch) as play:
        play.refusals = [BrokerUnavailable("away"), BrokerUnavailable("away")]
        await play.heard("consuming")
        assert play.told[:2] == ["ended: connect_error", "ended: connect_error"]


@pytest.mark.parametrize(
    ("refusal", "raised"),
    [
        (BrokerRefused("wrong password"), SettingsError),
        (TopologyError("queue differs"), TopologyError),
    ],
)
async def test_what_only_a_person_can_mend_ends_the_start(refusal: Exception, raised: type[Exception]) -> None:
    play = Stage()
    play.refusals = [refusal]
    with pytest.raises(raised, match=str(refusal)):
        await play.supervisor.run()


async def test_the_same_refusal_after_a_good_start_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(monkeypatch) as play:
        await play.heard("consuming")
        play.refusals = [BrokerRefused("rotated")]
        play.sessions[0].end("closed", "by a test")
        await play.heard("consuming", 2)
        assert "ended: connect_error" in play.told


async def test_being_told_to_stop_leaves_the_session_open_for_what_is_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(monkeypatch) as play:
        await play.heard("consuming")
    assert "close" not in play.told
    assert play.supervisor.session is play.sessions[0]
