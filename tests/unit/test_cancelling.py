"""Runs whose jobs were cancelled elsewhere are ended here."""

from consumer.cancelling import Canceller
from consumer.core.row import Ref
from tests.contract.stores import KIND, claim_of, run_of
from tests.support.twins import World


class Running:
    """Claims that are held, and a pool that notes which runs it ended."""

    def __init__(self) -> None:
        self.world = World()
        self.held = frozenset[Ref]()
        self.ended: list[str] = []
        self.canceller = Canceller(self.world.store, self, self.end)

    async def start(self, *keys: str) -> None:
        self.held |= {await run_of(self.world.store, claim_of(key)) for key in keys}

    def end(self, kind: str, key: str) -> bool:
        assert kind == KIND
        self.ended.append(key)
        return True


async def test_a_run_whose_job_was_cancelled_is_ended_and_its_neighbours_run_on() -> None:
    running = Running()
    await running.start("a", "b")
    await running.canceller.look()
    await running.world.store.cancel(KIND, "a", "ann")
    await running.canceller.look()
    assert running.ended == ["a"]


async def test_the_store_is_not_asked_about_claims_that_are_new() -> None:
    running = Running()
    await running.start("a")
    await running.world.store.cancel(KIND, "a", "ann")
    await running.canceller.look()
    assert running.ended == []
    await running.canceller.look()
    assert running.ended == ["a"]


async def test_a_run_that_is_over_is_not_asked_about_again() -> None:
    running = Running()
    await running.start("a")
    await running.canceller.look()
    await running.world.store.cancel(KIND, "a", "ann")
    running.held = frozenset()
    await running.canceller.look()
    assert running.ended == []


async def test_a_store_that_is_away_is_asked_again() -> None:
    running = Running()
    await running.start("a")
    await running.world.store.cancel(KIND, "a", "ann")
    running.world.store.away = ["cancelled"] * 2
    for _ in range(3):
        await running.canceller.look()
    assert running.ended == ["a"]
