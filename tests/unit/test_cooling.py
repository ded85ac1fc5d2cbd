"""What this process tells the store about kinds that cool down, what it learns from there, and what becomes of jobs."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from consumer.cooling import SharedCooling
from consumer.core.cooldown import Cooldown
from consumer.core.cooling import Cooling, CoolingRules
from consumer.core.disposition import Defer, Settlement
from consumer.core.job import Fault
from consumer.core.outcome import Failed, Outcome, Usage
from consumer.core.ports import Work
from consumer.core.row import Status
from consumer.metrics import Metrics
from consumer.runner import in_background
from schemas import headers
from schemas.codes import Code
from tests.support.twins import START, World, message, succeed
from tests.support.waiting import eventually

DOWN = Failed(
    Fault(Code.ATTEMPTS_EXHAUSTED, "DependencyDown", "x"), Usage(START, START + 1), after=30.0, dependency="partner-api"
)


def find_it_down(_: Work) -> Outcome:
    return DOWN


def of(world: World) -> SharedCooling:
    metrics = Metrics(CollectorRegistry(), "default")
    return SharedCooling(Cooling(CoolingRules(), lambda: 0.5), world.store, metrics, lambda: START)


async def test_what_others_found_out_counts_from_the_start_and_not_a_second_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("consumer.cooling.EVERY", 1_000)
    world = World()
    await world.store.cool(Cooldown("k", START + 5_000, "x"))
    cooling = of(world)
    async with in_background(cooling.keep):

        async def knows() -> bool:
            return cooling.due("k", START) is not None

        await eventually(knows, "it knows of the cooldown")


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


async def test_a_job_whose_dependency_is_down_comes_back_later_and_is_not_charged() -> None:
    world = World(find_it_down)
    delivery = await world.deliver(message())
    row, [copy] = await world.row(), world.publisher.confirmed
    assert delivery.settled == [Settlement.ACK]
    assert (row.status, row.attempt, row.due_at, row.history) == (Status.PENDING, 1, START + 37_500, ())
    assert headers.ATTEMPT not in copy.message.headers
    assert copy.message.headers[headers.DUE] == START + 37_500


async def test_others_of_a_kind_that_cools_down_are_put_off_without_a_run_or_a_claim() -> None:
    world = World(find_it_down)
    await world.deliver(message())
    other = await world.deliver(message("b"))
    assert other.settled == [Settlement.ACK]
    assert len(world.slots.executed) == 1
    assert await world.store.find("k", "b") is None
    assert world.slots.taken == 0
    assert world.notes.verdicts[1][0].disposition == Defer(START + 37_500, "cooling_down")


async def test_a_probe_that_succeeds_lets_the_others_in() -> None:
    world = World(find_it_down)
    await world.deliver(message())
    world.slots.run = succeed
    world.time.now += 30_000
    for key in ("a", "b", "c"):
        await world.deliver(message(key))
    assert [(await world.row(key)).status for key in ("a", "b", "c")] == [Status.SUCCEEDED] * 3


async def test_a_cooldown_beyond_a_jobs_deadline_ends_it_now() -> None:
    world = World(find_it_down)
    doomed = replace(message(), headers={headers.DEADLINE: START + 29_000})
    await world.deliver(doomed)
    [copy] = world.publisher.confirmed
    assert copy.message.headers[headers.CODE] == "deadline_exceeded"
