"""Doubts about a session: whoever looks from the broker's side sees what the client doesn't."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from consumer.core.delay import Ladder
from consumer.core.errors import BrokerUnavailable
from consumer.core.topology import build
from consumer.metrics import Metrics
from consumer.watch import Watch

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4), 100)


@dataclass(frozen=True, slots=True)
class Depth:
    ready: int
    consumers: int


class TwinSession:
    """Answers each look with `depth`, and meanwhile becomes `then` to the broker."""

    def __init__(self, depth: Depth | None, consumer: str | None, then: str | None) -> None:
        self._depth = depth
        self.consumer = consumer
        self._then = then
        self.ended: list[tuple[str, str]] = []

    async def depths(self, queues: Sequence[str]) -> dict[str, Depth | None]:
        self.consumer = self._then
        return dict.fromkeys(queues, self._depth)

    async def blocked(self) -> bool:
        return False

    def end(self, reason: str, detail: str) -> None:
        self.ended.append((reason, detail))


class SilentSession(TwinSession):
    async def depths(self, queues: Sequence[str]) -> dict[str, Depth | None]:
        await asyncio.Event().wait()
        raise AssertionError


class LostSession(TwinSession):
    async def depths(self, queues: Sequence[str]) -> dict[str, Depth | None]:
        raise BrokerUnavailable("the channel is gone")


def watch(heartbeat: float = 30) -> Watch:
    return Watch(TOPOLOGY, Metrics(CollectorRegistry(), "default"), lambda: None, heartbeat)


async def looked_at(session: TwinSession, heartbeat: float = 30) -> list[tuple[str, str]]:
    await watch(heartbeat).look(session)
    return session.ended


async def test_a_consumer_that_the_broker_knows_is_no_doubt() -> None:
    assert await looked_at(TwinSession(Depth(3, 1), "tag", "tag")) == []


@pytest.mark.parametrize("depth", [Depth(3, 0), None])
async def test_a_consumer_that_the_broker_doesn_t_know_ends_the_session(depth: Depth | None) -> None:
    ((reason, detail),) = await looked_at(TwinSession(depth, "tag", "tag"))
    assert (reason, detail) == ("watchdog", "the broker knows no consumer on jobs.default")


@pytest.mark.parametrize(("before", "after"), [(None, None), ("tag", None), (None, "tag"), ("tag", "another")])
async def test_a_consumer_that_comes_or_goes_during_the_look_is_no_doubt(before: str | None, after: str | None) -> None:
    assert await looked_at(TwinSession(Depth(3, 0), before, after)) == []


async def test_the_depths_are_shown_by_role_and_strays_are_one() -> None:
    metrics = Metrics(CollectorRegistry(), "default")
    await Watch(TOPOLOGY, metrics, lambda: None, 30).look(TwinSession(Depth(3, 1), "tag", "tag"))
    shown = {
        role: metrics.registry.get_sample_value("consumer_queue_messages_ready", {"queue": "default", "role": role})
        for role in ("work", "dead", "delay", "stray")
    }
    assert shown == {"work": 3, "dead": 3, "delay": 3 * TOPOLOGY.ladder.levels, "stray": 3}


async def test_a_broker_that_does_not_answer_within_a_heartbeat_ends_the_session() -> None:
    ((reason, detail),) = await looked_at(SilentSession(None, "tag", "tag"), heartbeat=0.01)
    assert (reason, detail) == ("watchdog", "the broker has not answered for 0.01 s")


async def test_a_session_that_can_t_be_asked_is_over() -> None:
    assert await looked_at(LostSession(None, "tag", "tag")) == [("watchdog", "the channel is gone")]
