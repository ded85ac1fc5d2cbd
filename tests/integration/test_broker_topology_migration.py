"""From one version of the queues to another on a real broker: nothing is lost, wherever it waits."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aio_pika
import pytest

from config.settings import Settings, load
from consumer.broker.declare import Mode, apply
from consumer.broker.mover import Mover
from consumer.core.errors import BrokerUnavailable, SettingsError
from consumer.migration import Report, migrate
from consumer.wiring import topology_of
from tests.support.producer import Producer
from tests.support.waiting import eventually, free_port

OLD_WORK, OLD_DEAD, NEW_WORK, NEW_DEAD = "jobs.default", "jobs.default.dead", "jobs.default.v2", "jobs.default.v2.dead"


@pytest.fixture
def chosen(amqp_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """The settings of one version; the old ladder is longer than the new one."""

    def of(version: int, **more: Any) -> Settings:
        levels = {1: 8}.get(version, 6)
        given = {"BROKER__URL": amqp_url, "TOPOLOGY__VERSION": version, "TOPOLOGY__DELAY_LEVELS": levels} | more
        for name, value in given.items():
            monkeypatch.setenv(f"CONSUMER_{name}", str(value))
        return load()

    return of


@asynccontextmanager
async def declared(url: str, *settings: Settings) -> AsyncIterator[Producer]:
    async with await aio_pika.connect(url) as connection:
        for each in settings:
            await apply(connection, topology_of(each), Mode.DECLARE)
    async with Producer(url) as producer:
        yield producer


async def delay(producer: Producer, settings: Settings, wait: int, key: str, queue: str = "default") -> None:
    """Publish into the ladder of these settings, as a retry does."""
    exchange, routing_key = topology_of(settings).ladder.route(wait, queue)
    ladder = await producer.channel.get_exchange(exchange, ensure=False)
    await ladder.publish(aio_pika.Message(b"1", message_id=key), routing_key, mandatory=True)


async def bury(producer: Producer, key: str, **headers: Any) -> None:
    dead = await producer.channel.get_exchange("jobs.dlx", ensure=False)
    await dead.publish(aio_pika.Message(b"1", message_id=key, headers=headers), "default", mandatory=True)


async def keys(producer: Producer, queue: str, count: int) -> set[str | None]:
    return {message.message_id for message in await producer.take(queue, count)}


async def test_work_dead_letters_and_waits_arrive_in_the_new_version_and_producers_notice_nothing(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    old, new = chosen(1), chosen(2)
    async with declared(amqp_url, old) as producer:
        for number in range(30):
            await producer.submit("echo", number, f"w{number}", headers={"mine": number})
        await bury(producer, "d0", **{"consumer-code": "rejected"})
        await delay(producer, old, 3_000, "later")
        report = await migrate(new, 1, dry_run=False)
        assert report.remains == []
        await producer.submit("echo", 0, "fresh")
        await bury(producer, "d1")
        taken = await producer.take(NEW_WORK, 32)
        assert [message.message_id for message in taken] == [*(f"w{n}" for n in range(30)), "fresh", "later"]
        assert taken[7].headers["mine"] == 7
        letters = await producer.take(NEW_DEAD, 2)
        assert [(letter.message_id, letter.headers.get("consumer-code")) for letter in letters] == [
            ("d0", "rejected"),
            ("d1", None),
        ]
        assert (await producer.depth(OLD_WORK), await producer.depth(OLD_DEAD)) == (0, 0)
    assert "queue jobs.default" in report.deletable
    assert any(what.startswith("queues and exchanges jobs.delay.v1.*") for what in report.deletable)


async def test_another_queue_of_the_namespace_keeps_its_version(amqp_url: str, chosen: Callable[..., Settings]) -> None:
    old, other, new = chosen(1), chosen(1, QUEUE="other"), chosen(2, QUEUE="default")
    async with declared(amqp_url, old, other) as producer:
        await delay(producer, other, 1_000, "later", "other")
        await producer.submit("echo", 1, "now", queue="other")
        assert (await migrate(new, 1, dry_run=False)).remains == []
        assert await keys(producer, "jobs.other", 2) == {"now", "later"}


async def test_strays_of_the_old_ladder_come_along_and_those_of_other_queues_stay(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    old, new = chosen(1), chosen(2)
    ladder = topology_of(old).ladder
    async with declared(amqp_url, old) as producer:
        await producer.channel.queue_delete(OLD_WORK)
        await asyncio.gather(*(delay(producer, old, 100, queue, queue) for queue in ("default", "other")))
        await eventually(lambda: holds(producer, ladder.stray, 2), "both are strays")
        dry = await migrate(new, 1, dry_run=True)
        assert ("look through", "2 messages of jobs.delay.v1.stray, for those of our queue") in dry.steps
        report = await migrate(new, 1, dry_run=False)
        assert ("move", "1 messages from jobs.delay.v1.stray to jobs.default.v2") in report.steps
        assert report.remains == []
        assert await keys(producer, NEW_WORK, 1) == {"default"}
        assert await keys(producer, ladder.stray, 1) == {"other"}


async def holds(producer: Producer, queue: str, count: int) -> bool:
    return await producer.depth(queue) == count


async def test_a_dry_run_counts_and_changes_nothing(amqp_url: str, chosen: Callable[..., Settings]) -> None:
    old, new = chosen(1), chosen(2)
    async with declared(amqp_url, old) as producer:
        await producer.submit("echo", 1, "k")
        report = await migrate(new, 1, dry_run=True)
        assert ("move", f"1 messages from {OLD_WORK} to {NEW_WORK}") in report.steps
        assert ("unbind", "jobs → jobs.default (default)") in report.steps
        assert await producer.depth(OLD_WORK) == 1
    async with await aio_pika.connect(amqp_url) as connection:
        assert await Mover(connection).depth(NEW_WORK) is None


async def test_what_has_consumers_is_left_to_them_and_the_next_run_completes_it(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    old, new = chosen(1), chosen(2)
    async with declared(amqp_url, old) as producer, await aio_pika.connect(amqp_url) as daemon:
        channel = await daemon.channel()
        await channel.set_qos(1)
        queue = await channel.get_queue(OLD_WORK, ensure=False)
        taken: asyncio.Queue[Any] = asyncio.Queue()
        await queue.consume(taken.put)
        for number in range(3):
            await producer.submit("echo", number, f"w{number}")
        await taken.get()
        report = await migrate(new, 1, dry_run=False)
        assert report.remains == [
            f"queue '{OLD_WORK}' has consumers (1): end the daemons of version 1, then run this again"
        ]
        await daemon.close()
        await eventually(lambda: _all_ready(producer, OLD_WORK, 3), "its deliveries are back")
        assert (await migrate(new, 1, dry_run=False)).remains == []
        assert await keys(producer, NEW_WORK, 3) == {"w0", "w1", "w2"}


async def _all_ready(producer: Producer, queue: str, count: int) -> bool:
    return await producer.depth(queue) == count and await producer.consumers(queue) == 0


async def test_a_daemon_of_the_old_version_that_binds_its_queue_again_makes_doubles_and_no_endless_run(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    old, new = chosen(1), chosen(2)
    async with declared(amqp_url, old) as producer:
        await migrate(new, 1, dry_run=False)
        async with declared(amqp_url, old):
            await producer.submit("echo", 1, "k")
        assert (await producer.depth(OLD_WORK), await producer.depth(NEW_WORK)) == (1, 1)
        report = await migrate(new, 1, dry_run=False)
        assert report.remains == []
        assert (await producer.depth(OLD_WORK), await producer.depth(NEW_WORK)) == (0, 2)
        assert await keys(producer, NEW_WORK, 2) == {"k"}


async def test_a_migration_can_be_taken_back_and_old_waits_follow(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    old, new = chosen(1), chosen(2)
    async with declared(amqp_url, old) as producer:
        await delay(producer, old, 4_000, "in the first ladder")
        await migrate(new, 1, dry_run=False)
        await delay(producer, new, 3_000, "in the second ladder")
        await producer.submit("echo", 1, "k")
        report = await migrate(chosen(1), 2, dry_run=False)
        assert report.remains == []
        assert await keys(producer, OLD_WORK, 3) == {"k", "in the first ladder", "in the second ladder"}
        assert await producer.depth(NEW_WORK) == 0


@contextmanager
def failing_after(count: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The connection is lost when so many messages were published."""
    from consumer.broker import publisher

    whole, published = publisher.AmqpPublisher.publish, 0

    async def publish(self: publisher.AmqpPublisher, parcel: Any) -> None:
        nonlocal published
        published += 1
        if published > count:
            raise BrokerUnavailable("gone")
        await whole(self, parcel)

    with monkeypatch.context() as patch:
        patch.setattr(publisher.AmqpPublisher, "publish", publish)
        yield


@pytest.mark.parametrize("after", [0, 7, 29, 31])
async def test_an_interrupted_migration_is_completed_by_the_next_one(
    amqp_url: str, chosen: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    old, new = chosen(1), chosen(2)
    async with declared(amqp_url, old) as producer:
        for number in range(30):
            await producer.submit("echo", number, f"w{number}")
        for number in range(5):
            await bury(producer, f"d{number}")
        with failing_after(after, monkeypatch), pytest.raises(BrokerUnavailable):
            await migrate(new, 1, dry_run=False)
        report: Report = await migrate(new, 1, dry_run=False)
        assert report.remains == []
        count = await producer.depth(NEW_WORK)
        assert await keys(producer, NEW_WORK, count) == {f"w{number}" for number in range(30)}
        assert await keys(producer, NEW_DEAD, 5) == {f"d{number}" for number in range(5)}


async def test_what_the_broker_wrote_of_a_dead_letter_goes_along(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    old, new = chosen(1, TOPOLOGY__DELIVERY_LIMIT=1), chosen(2)
    async with declared(amqp_url, old) as producer:
        await producer.submit("echo", 1, "innocent")
        for _ in range(3):
            async with await aio_pika.connect(amqp_url) as lost, lost.channel() as channel:
                queue = await channel.get_queue(OLD_WORK, ensure=False)
                await queue.get(fail=False, timeout=5)
        await eventually(lambda: _all_ready(producer, OLD_DEAD, 1), "the broker gave it up")
        await migrate(new, 1, dry_run=False)
        [letter] = await producer.take(NEW_DEAD)
    assert "delivery_limit" in str(letter.headers)
    assert letter.headers["consumer-code"] == "collateral"


async def test_bindings_that_should_be_seen_and_can_t_leave_it_unfinished(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    new = chosen(2, BROKER__MANAGEMENT_URL=f"http://127.0.0.1:{free_port()}")
    async with declared(amqp_url, chosen(1)):
        report = await migrate(new, 1, dry_run=False)
    assert ["bindings can't be seen" in why for why in report.remains] == [True]


async def test_a_version_that_is_not_there_or_is_the_chosen_one_is_one_sentence(
    amqp_url: str, chosen: Callable[..., Settings]
) -> None:
    with pytest.raises(SettingsError, match=r"there is nothing to migrate: the broker has no queue 'jobs\.default'"):
        await migrate(chosen(2), 1, dry_run=False)
    with pytest.raises(SettingsError, match=r"topology\.version is 2"):
        await migrate(chosen(2), 2, dry_run=False)
