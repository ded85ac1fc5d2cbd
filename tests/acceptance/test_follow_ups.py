"""Jobs that jobs ask for: sent with the result or not at all, and once in effect, whatever dies in between."""

import signal

import pytest

from tests.support.daemon import Daemon
from tests.support.marks import Marks
from tests.support.outages import PATIENT, calm, nothing_is_left, paused
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rows import all_are
from tests.support.settings import settings

pytestmark = pytest.mark.any_broker

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def store_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def wishes(marks: Marks, *given: dict[str, object]) -> dict[str, object]:
    return {**marks.payload, "wishes": given}


async def test_follow_ups_run_at_once_or_later_here_or_elsewhere_and_none_holds_up_another(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    async with Daemon(settings(amqp_url, sqlite_url)) as daemon, Producer(amqp_url) as producer:
        await daemon.ready()
        other = await producer.channel.declare_queue("jobs.other", durable=True, arguments={"x-queue-type": "quorum"})
        await other.bind("jobs", "other")
        asked = wishes(
            marks, {"queue": "nowhere"}, {}, {"delay": 2}, {"queue": "other"}, {"queue": "other", "delay": 2}
        )
        await producer.submit("parent", asked, "p", headers={"traceparent": TRACE})
        (parent,), (at_once,), (delayed,) = [await marks.of(key) for key in ("p", "parent/p/2", "parent/p/3")]
        assert delayed.at - parent.at >= 1_900 > at_once.at - parent.at
        there = {message.message_id: message for message in await producer.take("jobs.other", 2)}
        assert there.keys() == {"parent/p/4", "parent/p/5"}
        message = there["parent/p/4"]
        assert (message.type, message.headers["traceparent"]) == ("mark", TRACE)
        (line,) = await daemon.logged(lambda line: line["event"] == "follow-up not sent, tried again later")
        assert (line["level"], line["key"], line["queue"]) == ("error", "parent/p/1", "nowhere")
        await all_are("succeeded", sqlite_url, 3)
        assert await daemon.metric("consumer_publishes_total", target="follow_up", result="confirmed") == 4


@pytest.mark.parametrize(
    ("store_url", "crash_at", "runs_of_the_parent"),
    [("postgres", "after_commit", 1), ("sqlite", "after_run", 2)],
    indirect=["store_url"],
)
async def test_a_daemon_that_dies_before_it_can_send_a_follow_up_neither_loses_nor_doubles_it(
    amqp_url: str, store_url: str, marks: Marks, crash_at: str, runs_of_the_parent: int
) -> None:
    chosen = settings(amqp_url, store_url, STORE__LEASE_SECONDS="3")
    async with Producer(amqp_url) as producer:
        async with Daemon(chosen | {"FAULTS__CRASH_AT": crash_at}) as daemon:
            await daemon.ready()
            await producer.submit("parent", wishes(marks, {}, {"delay": 1}), "p")
            assert await daemon.wait() == -signal.SIGKILL
        assert [mark.key for mark in marks.all] == ["p"]
        async with Daemon(chosen) as daemon:
            found = await all_are("succeeded", store_url, 3)
            assert found.keys() == {"p", "parent/p/1", "parent/p/2"}
            daemon.terminate()
            assert await daemon.wait() == 0
        ran = [mark.key for mark in marks.all]
        assert [ran.count(key) for key in ("p", "parent/p/1", "parent/p/2")] == [runs_of_the_parent, 1, 1]
        assert await producer.depth("jobs.default") == 0
        assert await producer.depth("jobs.default.dead") == 0


async def test_a_follow_up_waits_for_a_broker_that_is_away_when_its_parent_is_done(
    amqp_url: str, sqlite_url: str, marks: Marks
) -> None:
    async with (
        Proxy(amqp_url) as proxy,
        Daemon(settings(proxy.url, sqlite_url, **PATIENT)) as daemon,
        Producer(amqp_url) as producer,
    ):
        await daemon.ready()
        await producer.submit("parent", {**wishes(marks, {}), "gated": True}, "p")
        await marks.of("p")
        async with calm(daemon):
            proxy.refuse()
            proxy.cut()
            await daemon.logged(paused)
            marks.open_gate()
            await all_are("succeeded", sqlite_url, 1)
        proxy.accept()
        assert (await all_are("succeeded", sqlite_url, 2)).keys() == {"p", "parent/p/1"}
        assert len(marks.all) == 2
        await nothing_is_left(daemon, producer)
