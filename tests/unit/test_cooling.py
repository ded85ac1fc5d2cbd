"""What this process tells the store about kinds that cool down, and what it learns from there."""

import pytest
from prometheus_client import CollectorRegistry

from consumer.cooling import SharedCooling
from consumer.core.cooldown import Cooldown
from consumer.core.cooling import Cooling, CoolingRules
from consumer.core.job import Fault
from consumer.core.outcome import Failed, Usage
from consumer.metrics import Metrics
from consumer.runner import in_background
from schemas.codes import Code
from tests.support.twins import START, World
from tests.support.waiting import eventually

DOWN = Failed(Fault(Code.ATTEMPTS_EXHAUSTED, "DependencyDown", "x"), Usage(), after=30.0, dependency="partner-api")


def of(world: World) -> SharedCooling:
    metrics = Metrics(CollectorRegistry(), "default")
    return SharedCooling(Cooling(CoolingRules(), lambda: 0.5), world.store, metrics, lambda: START)


async def test_what_others_found_out_counts_from_the_start_and_not_a_second_later() -> None:
    world = World()
    await world.store.cool(Cooldown("k", START + 5_000, "x"))
    cooling = of(world)
    async with in_background(cooling.keep):

        async def knows() -> bool:
            return cooling.due("k", START) is not None

        await eventually(knows, "it knows of the cooldown", within=0.5)


async def test_what_a_store_that_is_away_was_not_told_it_is_told_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("consumer.cooling.EVERY", 0.01)
    world = World()
    world.store.away = ["cool"]
    cooling = of(world)
    cooling.heard("k", DOWN, START)
    async with in_background(cooling.keep):

        async def told() -> bool:
            return [each.kind for each in await world.store.inner.cooldowns()] == ["k"]

        await eventually(told, "the store knows of the cooldown")
        assert cooling.due("k", START) is not None
