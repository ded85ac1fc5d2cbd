from consumer.core.job import Message
from consumer.core.ports import Parcel
from consumer.testing.broker import MemoryBroker
from consumer.testing.clock import VirtualClock
from consumer.testing.pipeline import topology


def broker() -> tuple[VirtualClock, MemoryBroker]:
    clock = VirtualClock(0)
    return clock, MemoryBroker(clock, topology())


def delayed(key: str, wait: int) -> Parcel:
    return Parcel(*topology().ladder.route(wait, "default"), Message(b"1", message_id=key), "retry")


def test_a_copy_on_the_ladder_comes_back_when_it_is_due_whatever_waits_longer() -> None:
    clock, at = broker()
    for key, wait in (("long", 10_000), ("short", 1_000), ("shorter", 950)):
        at.route(delayed(key, wait))
    assert (at.next_due, at.ready) == (1_000, [])
    clock.now = 999
    at.mature()
    assert at.ready == []
    clock.now = 10_000
    at.mature()
    assert [message.message_id for message, _ in at.ready] == ["short", "shorter", "long"]
    assert at.next_due is None


def test_a_message_lands_where_its_exchange_and_key_say() -> None:
    _, at = broker()
    message = Message(b"1")
    at.route(Parcel("jobs", "default", message, "follow_up"))
    at.route(Parcel("jobs.dlx", "default", message, "dead_letter"))
    other = Parcel("jobs", "mails", message, "follow_up")
    at.route(other)
    assert (at.ready, at.dead, at.elsewhere) == ([(message, False)], [message], [other])
    assert not at.empty
