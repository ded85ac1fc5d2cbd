"""What is bound, unbound and moved on the way from one version to another."""

from dataclasses import replace

from consumer.core.delay import Ladder
from consumer.core.job import Message
from consumer.core.migration import Migration
from consumer.core.topology import Binding, Topology, build

FIRST, SECOND, THIRD = (
    Ladder("jobs", levels=3),
    Ladder("jobs", levels=2, version=2),
    Ladder("jobs", levels=2, version=3),
)


def migration(old: Ladder, new: Ladder, *ladders: Ladder) -> Migration:
    return Migration(Topology("jobs", "etl.big", old), build("jobs", "etl.big", new, 100), ladders)


def test_every_ladder_that_is_there_leads_to_the_new_queue_by_as_many_words_as_it_has_levels() -> None:
    assert migration(SECOND, THIRD, FIRST, SECOND).binds == (
        Binding("jobs.delay.v1.out", "jobs.etl.big.v3", "*.*.*.etl.big"),
        Binding("jobs.delay.v2.out", "jobs.etl.big.v3", "*.*.etl.big"),
    )


def test_the_old_queue_is_unbound_from_everything_that_could_lead_to_it() -> None:
    assert migration(SECOND, THIRD, FIRST, SECOND).unbinds == (
        Binding("jobs", "jobs.etl.big.v2", "etl.big"),
        Binding("jobs.dlx", "jobs.etl.big.v2.dead", "etl.big"),
        Binding("jobs.delay.v3.out", "jobs.etl.big.v2", "*.*.etl.big"),
        Binding("jobs.delay.v1.out", "jobs.etl.big.v2", "*.*.*.etl.big"),
        Binding("jobs.delay.v2.out", "jobs.etl.big.v2", "*.*.etl.big"),
    )


def test_what_is_unbound_is_nothing_that_the_new_version_needs() -> None:
    plan = migration(FIRST, SECOND, FIRST)
    assert not set(plan.unbinds) & {*plan.new.bindings, *plan.binds}


MESSAGE = Message(
    b"body",
    {"mine": 1, "x-death": [{"reason": "expired", "queue": "jobs.etl.big"}], "x-delivery-count": 3, "x-other": 2},
    type="echo",
    message_id="k",
    expiration="5",
    user_id="somebody",
)


def test_work_goes_on_as_it_was_without_what_the_broker_wrote() -> None:
    work, _ = migration(FIRST, SECOND, FIRST).moves
    parcel = work.parcel(MESSAGE)
    assert (work.source, work.destination) == ("jobs.etl.big", "jobs.etl.big.v2")
    assert (parcel.exchange, parcel.routing_key) == ("jobs", "etl.big")
    assert parcel.message == replace(MESSAGE, headers={"mine": 1, "x-other": 2}, expiration=None, user_id=None)


def test_a_dead_letter_keeps_what_the_broker_wrote_and_says_code_and_id_itself() -> None:
    """What names the old queue would mean nothing to the new one."""
    _, dead = migration(FIRST, SECOND, FIRST).moves
    parcel = dead.parcel(MESSAGE)
    assert (parcel.exchange, parcel.routing_key) == ("jobs.dlx", "etl.big")
    headers = parcel.message.headers
    assert headers["x-death"] == MESSAGE.headers["x-death"]
    assert headers["consumer-code"] == "expired"
    assert "x-delivery-count" not in headers
    assert dead.parcel(parcel.message).message.headers == headers


def test_a_dead_letter_of_ours_stays_as_it_is() -> None:
    _, dead = migration(FIRST, SECOND, FIRST).moves
    ours = replace(MESSAGE, headers={"consumer-code": "rejected", "consumer-dead-id": "0" * 20})
    assert dead.parcel(ours).message.headers == ours.headers
