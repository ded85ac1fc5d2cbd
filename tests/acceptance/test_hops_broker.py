"""A hop fails because the broker is away: nothing is lost, nobody is charged, and nothing spins."""

from tests.support.marks import Marks
from tests.support.outages import attempts, begun, broker_behind_proxy, calm, nothing_is_left, paused
from tests.support.rows import all_are
from tests.support.waiting import eventually


async def test_the_broker_is_gone_at_the_confirm_of_a_retry(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    async with broker_behind_proxy(amqp_url, sqlite_url) as (proxy, daemon, producer):
        await begun("fails_at_gate", producer, marks)
        async with calm(daemon):
            proxy.refuse()
            proxy.stall()
            marks.open_gate()
            await daemon.logged(paused)
            proxy.cut()
        proxy.flow()
        proxy.accept()
        found = await all_are("succeeded", sqlite_url, 1)
        assert attempts(found) == {"one": (2, 0)}
        assert sum(mark.attempt == 2 for mark in marks.all) == 1
        await nothing_is_left(daemon, producer)


async def test_the_confirm_of_a_retry_is_lost_and_its_copy_is_not(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    """A publish without an answer is unknown, not failed: this one landed."""
    async with broker_behind_proxy(amqp_url, sqlite_url) as (proxy, daemon, producer):
        await begun("fails_at_gate", producer, marks)
        proxy.stall(to_server=False)
        marks.open_gate()
        await daemon.logged(lambda line: line["event"] == "intake stopped")
        proxy.cut()
        proxy.flow()
        found = await all_are("succeeded", sqlite_url, 1)
        assert found["one"]["attempt"] == 2
        await daemon.logged(lambda line: line.get("disposition") == "duplicate")
        assert sum(mark.attempt == 2 for mark in marks.all) == 1
        await nothing_is_left(daemon, producer)


async def test_the_broker_is_gone_at_the_ack(amqp_url: str, sqlite_url: str, marks: Marks) -> None:
    async with broker_behind_proxy(amqp_url, sqlite_url) as (proxy, daemon, producer):
        await begun("wait_for_gate", producer, marks)
        async with calm(daemon):
            proxy.refuse()
            proxy.cut()
            await daemon.logged(paused)
            marks.open_gate()
            (line,) = await daemon.logged(lambda line: line.get("key") == "one")
        assert (line["disposition"], line["stale"]) == ("complete", True)
        proxy.accept()
        (_, again) = await daemon.logged(lambda line: line.get("key") == "one", count=2)
        assert again["disposition"] == "duplicate"
        assert attempts(await all_are("succeeded", sqlite_url, 1)) == {"one": (1, 0)}
        assert len(marks.all) == 1
        await nothing_is_left(daemon, producer)


async def test_a_delivery_that_comes_back_while_its_job_still_runs_is_settled_like_it(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    async with broker_behind_proxy(amqp_url, sqlite_url) as (proxy, daemon, producer):
        await begun("wait_for_gate", producer, marks)
        proxy.cut()

        async def redelivered() -> bool:
            return await daemon.metric("consumer_messages_received_total", redelivered="true") >= 1

        await eventually(redelivered, "the broker hands it out again")
        marks.open_gate()
        first, again = await daemon.logged(lambda line: line.get("key") == "one", count=2)
        assert (first["disposition"], again["disposition"]) == ("complete", "duplicate")
        assert len(marks.all) == 1
        await nothing_is_left(daemon, producer)
