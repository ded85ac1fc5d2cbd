from dataclasses import replace

from consumer.core.decode import DecodeRules, decode
from consumer.core.delay import Ladder
from consumer.core.job import Job, Message
from consumer.core.outbox import Outgoing
from consumer.core.relay import parcel
from consumer.core.topology import build

NOW = 1_700_000_000_000
LADDER = Ladder("jobs")
TOPOLOGY = build("jobs", "default", LADDER, 100)
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OUTGOING = Outgoing(7, "mail.log", "order-7/1", b'{"n": 1}', None, None, TRACE, NOW + 90_000, NOW - 5)


def decoded(message: Message) -> Job:
    job = decode(message, DecodeRules())
    assert isinstance(job, Job)
    return job


def test_a_follow_up_is_a_job_of_its_own_with_the_trace_and_the_deadline_of_its_parent() -> None:
    sent = parcel(OUTGOING, TOPOLOGY, NOW)
    assert (sent.exchange, sent.routing_key, sent.target) == ("jobs", "default", "follow_up")
    job = decoded(sent.message)
    assert (job.kind, job.key, job.body, job.attempt, job.generation) == ("mail.log", "order-7/1", b'{"n": 1}', 1, 0)
    assert (job.submitted_at, job.deadline, job.due, job.traceparent) == (NOW - 5, NOW + 90_000, None, TRACE)


def test_it_is_the_same_message_however_often_it_is_sent() -> None:
    delayed = replace(OUTGOING, due=NOW + 60_000)
    assert parcel(delayed, TOPOLOGY, NOW).message == parcel(delayed, TOPOLOGY, NOW + 50_000).message


def test_a_delayed_one_waits_on_the_ladder_of_our_own_queue_until_it_is_due() -> None:
    delayed = replace(OUTGOING, due=NOW + 60_000)
    sent = parcel(delayed, TOPOLOGY, NOW)
    assert (sent.exchange, sent.routing_key) == LADDER.route(60_000, "default")
    assert decoded(sent.message).due == NOW + 60_000
    assert parcel(delayed, TOPOLOGY, NOW + 60_000).exchange == "jobs"


def test_one_for_another_queue_never_waits_on_the_ladder() -> None:
    sent = parcel(replace(OUTGOING, queue="mail", due=NOW + 60_000), TOPOLOGY, NOW)
    assert (sent.exchange, sent.routing_key) == ("jobs", "mail")


def test_a_key_that_is_too_long_for_a_property_travels_in_a_header() -> None:
    assert decoded(parcel(replace(OUTGOING, key="ü" * 300), TOPOLOGY, NOW).message).key == "ü" * 300
