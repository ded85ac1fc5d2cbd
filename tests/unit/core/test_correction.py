"""A payload that is put right, in whatever form its message has."""

import gzip
from dataclasses import replace

import pytest

from consumer.core.correction import corrected
from consumer.core.decode import DecodeRules, decode
from consumer.core.job import Job, Message
from consumer.core.pointer import resolve
from consumer.core.strict_json import loads

PLAIN = Message(b'{"n": 1}', {"tenant": "x"}, content_type="application/json", type="k", message_id="a")
EVENT = replace(
    PLAIN,
    body=b'{"specversion": "1.0", "type": "k", "source": "/s", "id": "1", "data": {"n": 1}}',
    content_type="application/cloudevents+json",
    type=None,
    message_id=None,
)
NEW = b'{"n": 12345678901234567890.12345}'


def payload_of(message: Message, rules: DecodeRules) -> bytes:
    job = decode(message, rules)
    assert isinstance(job, Job)
    return job.body


@pytest.mark.parametrize(
    "message",
    [
        PLAIN,
        replace(PLAIN, body=gzip.compress(b"1"), content_encoding="gzip"),
        replace(PLAIN, body=b"\xff{", content_type="text/xml"),
    ],
)
def test_the_payload_is_the_whole_body_of_a_plain_message(message: Message) -> None:
    right = corrected(message, NEW, DecodeRules())
    assert payload_of(right, DecodeRules()) == NEW
    assert (right.type, right.message_id, right.headers) == ("k", "a", {"tenant": "x"})


@pytest.mark.parametrize(
    ("message", "rules", "pointer"),
    [
        (EVENT, DecodeRules(), "/data"),
        (
            replace(PLAIN, body='{"id": "ä", "in": [0, {"a/b": 1}]}'.encode()),
            DecodeRules(payload_pointer="/in/1/a~1b"),
            "/in/1/a~1b",
        ),
        (replace(PLAIN, body=b'[7, {"n": 1}]'), DecodeRules(payload_pointer="/1"), "/1"),
    ],
)
def test_the_payload_takes_its_place_in_an_envelope_and_keeps_its_own_text(
    message: Message, rules: DecodeRules, pointer: str
) -> None:
    right = corrected(message, NEW, rules)
    job = decode(right, rules)
    assert isinstance(job, Job)
    assert job.payload == pointer
    assert NEW in right.body
    before, after = loads(message.body), loads(right.body)
    assert resolve(after, pointer) == loads(NEW)
    assert len(before) == len(after)


def test_an_envelope_that_can_not_be_read_is_refused_again() -> None:
    assert not isinstance(decode(corrected(replace(EVENT, body=b"{"), NEW, DecodeRules()), DecodeRules()), Job)
