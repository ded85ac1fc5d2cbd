from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from consumer.core.decode import DecodeRules, decode
from consumer.core.job import Job, Message
from consumer.core.strict_json import loads
from schemas.amqp import Amqp
from schemas.cloudevent import CloudEvent
from schemas.job import JobHeaders, JobMessage
from schemas.payloads import PAYLOADS, PrimesCount

TIME = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=200)


def received(published: Amqp) -> Message:
    names = ("type", "message_id", "content_type", "priority")
    properties = {name: published.properties.get(name) for name in names}
    return Message(published.body, headers=published.properties.get("headers", {}), **properties)


def job_of(published: Amqp) -> Job:
    decoded = decode(received(published), DecodeRules())
    assert isinstance(decoded, Job), decoded
    return decoded


def test_what_the_job_model_publishes_is_what_the_daemon_decodes() -> None:
    message = JobMessage(
        kind="primes.count",
        key="order-1",
        payload=PrimesCount(n=100).model_dump(),
        submitted_at=TIME,
        deadline=TIME + timedelta(seconds=1),
        not_before=TIME.astimezone(timezone(timedelta(hours=2))),
        priority=5,
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    )
    published = message.to_amqp()
    job = job_of(published)
    assert (job.kind, job.key, loads(job.body)) == ("primes.count", "order-1", {"n": 100})
    assert (job.submitted_at, job.deadline, job.due) == (1_700_000_000_000, 1_700_000_001_000, 1_700_000_000_000)
    assert job.traceparent == message.traceparent
    assert published.properties["priority"] == 5
    assert published.properties["delivery_mode"] == 2
    JobHeaders.model_validate(published.properties["headers"])


def test_a_payload_may_be_given_as_its_model() -> None:
    payload: Any = PrimesCount(n=100)
    assert JobMessage(kind="primes.count", key="1", payload=payload).to_amqp().body == b'{"n":100}'


@given(NAMES, NAMES.filter(str.strip), st.recursive(st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_job_that_the_model_takes_is_decoded_as_it_was_meant(kind: str, key: str, payload: Any) -> None:
    job = job_of(JobMessage(kind=kind, key=key, payload=payload).to_amqp())
    assert (job.kind, job.key, loads(job.body)) == (kind, key, payload)


def test_a_key_that_no_property_can_hold_travels_in_a_header() -> None:
    published = JobMessage(kind="a", key="ä" * 500, payload=None).to_amqp()
    assert "message_id" not in published.properties
    assert job_of(published).key == "ä" * 500


def test_an_event_is_decoded_as_it_was_meant() -> None:
    event = CloudEvent(type="primes.count", source="/orders", id="7 b", time=TIME, data={"n": 100})
    job = job_of(event.to_amqp())
    assert (job.kind, job.key, job.payload, job.submitted_at) == (
        "primes.count",
        "/orders 7 b",
        "/data",
        1_700_000_000_000,
    )


def test_an_event_may_carry_no_data_but_null_and_further_attributes() -> None:
    event = CloudEvent.model_validate({"type": "a", "source": "/s", "id": "1", "data": None, "tenant": "x"})
    assert loads(event.to_amqp().body) == {
        "specversion": "1.0",
        "tenant": "x",
        "type": "a",
        "source": "/s",
        "id": "1",
    } | {"data": None}


@pytest.mark.parametrize(
    "change",
    [
        {"kind": ""},
        {"kind": "a\nb"},
        {"kind": "a" * 201},
        {"key": ""},
        {"key": "\x00"},
        {"payload": float("nan")},
        {"payload": {"a": [float("inf")]}},
        {"payload": "\ud800"},
        {"payload": object()},
        {"priority": 256},
        {"deadline": datetime(2023, 1, 1)},  # noqa: DTZ001 - no zone is the point
        {"traceparent": "nonsense"},
        {"surprise": 1},
    ],
)
def test_what_the_daemon_would_refuse_is_refused_at_the_producer(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JobMessage.model_validate({"kind": "a", "key": "k", "payload": {}} | change)


def test_every_built_in_kind_has_a_payload_model_that_the_daemon_can_decode() -> None:
    examples: dict[str, Any] = {"primes.count": {"n": 100}, "text.digest": {"text": "a"}}
    assert examples.keys() == PAYLOADS.keys()
    for kind, payload in examples.items():
        assert PAYLOADS[kind].model_validate(payload).model_dump() == payload
        assert job_of(JobMessage(kind=kind, key="1", payload=payload).to_amqp()).kind == kind


def test_the_limits_of_names_are_the_same_at_both_ends() -> None:
    at_limit = JobMessage(kind="a" * 200, key="k" * 500, payload=None).to_amqp()
    assert job_of(at_limit)
    for change in ({"type": "a" * 201}, {"headers": {"idempotency-key": "k" * 501}}):
        assert not isinstance(decode(replace(received(at_limit), **change), DecodeRules()), Job)
