"""When strays are looked for, and what is said about them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumer.core.delay import Ladder
from consumer.core.errors import BrokerUnavailable
from consumer.core.job import Message
from consumer.core.parcels import Copier
from consumer.core.ports import Parcel
from consumer.core.topology import build
from consumer.strays import Strays

LADDER = Ladder("jobs", levels=4)
COPIER = Copier(build("jobs", "default", LADDER, 100), "test")
SOON = 10.0


@dataclass(frozen=True, slots=True)
class Depth:
    ready: int


@dataclass(frozen=True, slots=True)
class Found:
    home: int = 0
    left: Mapping[str, int] = field(default_factory=dict)
    failure: str | None = None


class TwinSession:
    """Has so many strays, one of which is handed over at a look; `looked` is set at each look."""

    def __init__(self, strays: int | None, found: Found = Found()) -> None:
        self.ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked: list[str] = []
        self.looks = 0
        self.looked = asyncio.Event()
        self._strays = strays
        self._found = found

    async def depths(self, queues: Sequence[str]) -> Mapping[str, Depth | None]:
        self.asked += queues
        self.looked.set()
        return {queue: None if self._strays is None else Depth(self._strays) for queue in queues}

    async def bring_home(self, publish: Callable[[Message], Awaitable[None]]) -> Found:
        self.looks += 1
        await publish(Message(b"{}", headers={"x-death": [], "mine": 1}))
        return self._found


class LostSession(TwinSession):
    async def depths(self, queues: Sequence[str]) -> Mapping[str, Depth | None]:
        raise BrokerUnavailable("the channel is gone")


class Kept:
    """A publisher that keeps what it gets."""

    def __init__(self) -> None:
        self.parcels: list[Parcel] = []

    async def publish(self, parcel: Parcel) -> None:
        self.parcels.append(parcel)


def strays(publisher: Kept | None = None) -> Strays:
    return Strays(publisher or Kept(), COPIER, lambda: 0.5)


async def events_of(looking: Strays, session: TwinSession) -> list[dict[str, Any]]:
    looking.opened(session)
    with capture_logs() as lines:
        await looking.look()
    return [{name: value for name, value in line.items() if name != "log_level"} for line in lines]


async def test_strays_of_our_queue_are_published_to_it_without_what_brokers_wrote() -> None:
    publisher, session = Kept(), TwinSession(1, Found(home=1))
    said = await events_of(strays(publisher), session)
    [parcel] = publisher.parcels
    assert (parcel.exchange, parcel.routing_key, parcel.message.headers) == ("jobs", "default", {"mine": 1})
    assert said == [{"event": "strays brought home", "queue": "jobs.default", "count": 1}]
    assert session.asked == ["jobs.delay.v1.stray"]


@pytest.mark.parametrize("ready", [0, None])
async def test_a_queue_of_strays_that_is_empty_or_missing_is_left_alone(ready: int | None) -> None:
    session = TwinSession(ready)
    assert await events_of(strays(), session) == []
    assert session.looks == 0


async def test_those_of_other_queues_are_told_once_until_they_change_the_largest_first() -> None:
    many = {str(number): number for number in range(1, 8)}
    looking = strays()
    [line] = await events_of(looking, TwinSession(28, Found(left=many)))
    assert line["queues"] == {"7": 7, "6": 6, "5": 5, "4": 4, "3": 3}
    assert await events_of(looking, TwinSession(28, Found(left=dict(many)))) == []
    [line] = await events_of(looking, TwinSession(1, Found(left={"1": 1})))
    assert line["queues"] == {"1": 1}


async def test_what_could_not_be_published_is_said_with_its_reason() -> None:
    [line, _] = await events_of(strays(), TwinSession(1, Found(left={"default": 1}, failure="nobody takes it")))
    assert line["error"] == "nobody takes it"


async def test_a_broker_that_is_away_ends_the_look_and_an_ended_session_is_not_asked() -> None:
    [line] = await events_of(strays(), LostSession(1))
    assert line["error"] == "the channel is gone"
    session = TwinSession(1)
    session.ended.set_result(None)
    assert await events_of(strays(), session) == []
    assert session.asked == []


async def test_each_new_session_is_looked_at_once_at_its_start() -> None:
    looking = strays()
    keeping = asyncio.create_task(looking.keep())
    for _ in range(2):
        session = TwinSession(0)
        looking.opened(session)
        await asyncio.wait_for(session.looked.wait(), SOON)
        assert session.asked == ["jobs.delay.v1.stray"]
    keeping.cancel()


@pytest.mark.parametrize(("soon", "every", "looks"), [(0.01, 60, 2), (0.01, 0.01, 4)])
async def test_a_look_is_repeated_soon_and_then_from_time_to_time_without_a_new_session(
    monkeypatch: pytest.MonkeyPatch, soon: float, every: float, looks: int
) -> None:
    monkeypatch.setattr("consumer.strays.SOON", soon)
    monkeypatch.setattr("consumer.strays.EVERY", every)
    looking, session = strays(), TwinSession(0)
    keeping = asyncio.create_task(looking.keep())
    looking.opened(session)
    for _ in range(looks):
        await asyncio.wait_for(session.looked.wait(), SOON)
        session.looked.clear()
    keeping.cancel()
