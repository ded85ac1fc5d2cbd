import asyncio
from collections.abc import Sequence

import pytest

from consumer.core.claim import ClaimRequest, Run
from consumer.core.cooldown import Cooldown
from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.core.row import Change, Mark, Ref, Row, Status
from consumer.metrics import STORE_OPERATIONS
from consumer.store.grouped import GroupedStore
from consumer.store.memory import MemoryBackend
from tests.contract.stores import claim_of


class Watch:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, int]] = []

    def __call__(self, operation: str, result: str, seconds: float, batch_size: int) -> None:
        assert seconds >= 0
        self.seen.append((operation, result, batch_size))


class Broken(MemoryBackend):
    async def find(self, kind: str, key: str) -> Row | None:
        raise ValueError("with a secret")

    async def probe(self) -> None:
        raise StoreUnavailable("the disk is full")


def store(watch: Watch, backend: type[MemoryBackend] = MemoryBackend) -> GroupedStore:
    return GroupedStore(backend(lambda: 0), watch)


async def test_every_exchange_is_observed_with_the_size_of_its_batch() -> None:
    watch = Watch()
    jobs = store(watch)
    claims = await asyncio.gather(*(jobs.claim(claim_of(f"key-{number}")) for number in range(3)))
    assert claims == [Run(1, 1)] * 3
    await jobs.write(Change(Ref("mail.send", "key-0", 1), Status.SUCCEEDED, result=b"1"))
    await jobs.renew([Ref("mail.send", "key-1", 1), Ref("mail.send", "key-2", 1)], 10)
    await jobs.submit(Row("mail.send", "key-9", Status.PENDING))
    await jobs.find("mail.send", "key-9")
    await jobs.probe()
    assert watch.seen == [
        ("claim", "ok", 3),
        ("write", "ok", 1),
        ("renew", "ok", 2),
        ("submit", "ok", 1),
        ("find", "ok", 1),
        ("probe", "ok", 1),
    ]


async def test_what_the_helpers_of_the_daemon_ask_is_observed_under_names_that_the_metrics_know() -> None:
    watch = Watch()
    jobs, ref = store(watch), Ref("mail.send", "key-1", 1)
    await jobs.cancel("mail.send", "key-1", "ann")
    await jobs.cancelled([ref])
    await jobs.progress([Mark(ref, 0.5, "")] * 2)
    await jobs.outbox(50, 30_000)
    await jobs.sent([1, 2, 3])
    await jobs.cool(Cooldown("mail.send", 9, ""))
    await jobs.warm("mail.send")
    await jobs.cooldowns()
    operations = [("cancel", 1), ("cancel", 1), ("progress", 2), ("outbox", 50), ("outbox", 3), *[("cooldown", 1)] * 3]
    assert watch.seen == [(operation, "ok", size) for operation, size in operations]
    assert {operation for operation, _ in operations} <= set(STORE_OPERATIONS)


async def test_nothing_to_ask_costs_no_exchange() -> None:
    watch = Watch()
    jobs = store(watch)
    assert await jobs.cancelled([]) == frozenset()
    await jobs.progress([])
    await jobs.sent([])
    assert watch.seen == []


async def test_an_error_is_observed_and_told_as_store_unavailable_without_its_values() -> None:
    watch = Watch()
    jobs = store(watch, Broken)
    with pytest.raises(StoreUnavailable, match="disk is full"):
        await jobs.probe()
    with pytest.raises(StoreUnavailable) as caught:
        await jobs.find("mail.send", "key-1")
    assert "ValueError" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert watch.seen == [("probe", "error", 1), ("find", "error", 1)]


class Unfit(MemoryBackend):
    """A table that refuses every write."""

    async def write(self, changes: Sequence[Change]) -> list[bool]:
        raise StoreRefused("a constraint")


async def test_only_a_result_can_be_refused_since_all_else_in_a_write_is_ours() -> None:
    jobs = store(Watch(), Unfit)
    ref = Ref("mail.send", "key-1", 1)
    with pytest.raises(StoreRefused):
        await jobs.write(Change(ref, Status.SUCCEEDED, result=b"1"))
    for status in (Status.RETRYING, Status.FAILED, Status.PENDING):
        with pytest.raises(StoreUnavailable, match="a constraint"):
            await jobs.write(Change(ref, status))


async def test_nothing_to_renew_asks_nobody() -> None:
    watch = Watch()
    assert await store(watch).renew([], 10) == frozenset()
    assert watch.seen == []


async def test_a_closed_store_refuses_in_the_words_of_its_port() -> None:
    jobs = store(Watch())
    await jobs.close()
    request: ClaimRequest = claim_of("key-1")
    with pytest.raises(StoreUnavailable, match="closed"):
        await jobs.claim(request)
