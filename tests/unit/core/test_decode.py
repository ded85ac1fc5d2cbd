import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.core.decode import CANONICAL_LIMIT, DecodeRules, decode
from consumer.core.job import Job, Message, Refusal
from consumer.core.pointer import resolve
from consumer.core.strict_json import canonical, loads
from schemas.codes import MALFORMED, Code

RULES = DecodeRules()
POINTERS = DecodeRules(kind_pointer="/task/name", key_pointer="/taskId", payload_pointer="/payload")
PLAIN = Message(b'{"n":100}', content_type="application/json", type="primes.count", message_id="k1")
EVENT = {"specversion": "1.0", "type": "primes.count", "source": "/orders", "id": "7", "data": {"n": 100}}
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def structured(**changes: Any) -> Message:
    event = {name: value for name, value in (EVENT | changes).items() if value is not ...}
    return Message(json.dumps(event).encode(), content_type="application/cloudevents+json; charset=utf-8")


def binary(prefix: str = "cloudEvents:", **changes: Any) -> Message:
    event = {name: value for name, value in (EVENT | changes).items() if name != "data" and value is not ...}
    headers = {prefix + name: value for name, value in event.items()}
    return Message(b'{"n":100}', headers=headers, content_type="application/json")


def job_of(message: Message, rules: DecodeRules = RULES) -> Job:
    decoded = decode(message, rules)
    assert isinstance(decoded, Job), decoded
    return decoded


def refusal_of(message: Message, rules: DecodeRules = RULES) -> Refusal:
    decoded = decode(message, rules)
    assert isinstance(decoded, Refusal), decoded
    return decoded


# the forms


def test_a_plain_message_is_a_job_by_its_properties() -> None:
    job = job_of(PLAIN)
    assert (job.kind, job.key, job.body, job.payload) == ("primes.count", "k1", b'{"n":100}', "")
    assert (job.attempt, job.generation, job.submitted_at, job.deadline, job.due) == (1, 0, None, None, None)


def test_a_message_without_content_type_is_taken_for_json() -> None:
    assert job_of(replace(PLAIN, content_type=None)) == job_of(PLAIN)


def test_the_idempotency_key_header_wins_over_every_other_key() -> None:
    for message in (PLAIN, structured(), binary()):
        assert job_of(replace(message, headers=message.headers | {"idempotency-key": "mine"})).key == "mine"


def test_a_structured_event_is_a_job_whose_payload_is_its_data() -> None:
    job = job_of(structured(time="2023-11-14T22:13:20Z", traceparent=TRACEPARENT))
    assert (job.kind, job.key) == ("primes.count", "/orders 7")
    assert resolve(loads(job.body), job.payload) == {"n": 100}
    assert (job.submitted_at, job.traceparent) == (1_700_000_000_000, TRACEPARENT)


@pytest.mark.parametrize("prefix", ["cloudEvents:", "cloudEvents_"])
def test_a_binary_event_is_a_job_whose_payload_is_its_body(prefix: str) -> None:
    job = job_of(binary(prefix, time=datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), traceparent=TRACEPARENT))
    assert (job.kind, job.key, job.body, job.payload) == ("primes.count", "/orders 7", b'{"n":100}', "")
    assert (job.submitted_at, job.traceparent) == (1_700_000_000_000, TRACEPARENT)


def test_events_that_differ_in_source_or_id_never_share_a_key() -> None:
    keys = {job_of(structured(source=s, id=i)).key for s, i in [("a b", "c"), ("a", "b c"), ("a%20b", "d c")]}
    assert len(keys) == 3


def test_pointers_find_kind_key_and_payload_in_the_body_of_an_existing_producer() -> None:
    body = b'{"taskId":42,"task":{"name":"primes.count"},"payload":{"n":100}}'
    job = job_of(Message(body), POINTERS)
    assert (job.kind, job.key, job.payload) == ("primes.count", "42", "/payload")


def test_what_a_pointer_does_not_find_is_taken_from_properties_and_the_default_kind() -> None:
    rules = replace(POINTERS, default_kind="text.digest")
    assert job_of(Message(b'{"payload":1}', message_id="m"), rules).kind == "text.digest"
    assert job_of(Message(b'{"payload":1}', message_id="m", type="other"), rules).kind == "other"
    assert job_of(Message(b'{"payload":1}', message_id="m"), rules).key == "m"


def test_a_queue_with_a_default_kind_needs_no_type() -> None:
    assert job_of(replace(PLAIN, type=None), DecodeRules(default_kind="text.digest")).kind == "text.digest"


def test_a_compressed_body_reaches_the_job_inflated() -> None:
    assert job_of(replace(PLAIN, body=gzip.compress(PLAIN.body), content_encoding="gzip")).body == PLAIN.body


# refusals


@pytest.mark.parametrize(
    ("message", "code", "kind", "key"),
    [
        (replace(PLAIN, content_type="text/plain"), Code.UNSUPPORTED_CONTENT_TYPE, "primes.count", "k1"),
        (replace(PLAIN, content_encoding="br"), Code.UNSUPPORTED_ENCODING, "primes.count", "k1"),
        (replace(PLAIN, body=b" " * (RULES.max_bytes + 1)), Code.TOO_LARGE, "primes.count", "k1"),
        (replace(PLAIN, type=None), Code.MISSING_KIND, None, "k1"),
        (replace(PLAIN, type=""), Code.MISSING_KIND, None, "k1"),
        (replace(PLAIN, type="a\nb"), Code.MISSING_KIND, None, "k1"),
        (replace(PLAIN, type="k" * 201), Code.MISSING_KIND, None, "k1"),
        (replace(PLAIN, message_id=None), Code.MISSING_KEY, "primes.count", None),
        (replace(PLAIN, message_id="k" * 501), Code.MISSING_KEY, "primes.count", None),
        (replace(PLAIN, message_id="a\x00b"), Code.MISSING_KEY, "primes.count", None),
        (replace(PLAIN, headers={"idempotency-key": b"\xff"}), Code.MISSING_KEY, "primes.count", None),
        (structured(type=...), Code.MISSING_KIND, None, "/orders 7"),
        (structured(type=["a"]), Code.MISSING_KIND, None, "/orders 7"),
        (structured(id=...), Code.MISSING_KEY, "primes.count", None),
        (structured(source={"a": 1}), Code.MISSING_KEY, "primes.count", None),
        (structured(data=...), Code.INVALID_PAYLOAD, "primes.count", "/orders 7"),
        (structured(data=..., data_base64="aGk="), Code.INVALID_PAYLOAD, "primes.count", "/orders 7"),
        (replace(structured(), body=b"[]"), Code.MISSING_KIND, None, None),
        (replace(structured(), body=b'{"data":NaN}'), Code.INVALID_JSON, None, None),
        (replace(structured(), body=b"[" * 5000), Code.TOO_DEEP, None, None),
        (replace(structured(), body=b'{"data":' + b"9" * 2000 + b"}"), Code.NUMBER_OUT_OF_RANGE, None, None),
        (binary(id=...), Code.MISSING_KEY, "primes.count", None),
        (binary(type=...), Code.MISSING_KIND, None, "/orders 7"),
    ],
)
def test_a_message_that_is_no_job_is_refused_with_all_that_is_known(
    message: Message, code: Code, kind: str | None, key: str | None
) -> None:
    refusal = refusal_of(message)
    assert (refusal.code, refusal.kind, refusal.key) == (code, kind, key)
    assert refusal.detail


def test_a_missing_payload_names_the_pointer() -> None:
    refusal = refusal_of(Message(b'{"taskId":"t"}', type="a"), POINTERS)
    assert (refusal.code, refusal.kind, refusal.key) == (Code.INVALID_PAYLOAD, "a", "t")
    assert "/payload" in refusal.detail


def test_a_digest_stands_in_for_a_missing_key_but_not_for_a_broken_one() -> None:
    rules = DecodeRules(missing_key="digest")
    zipped = replace(PLAIN, message_id=None, body=gzip.compress(PLAIN.body), content_encoding="gzip")
    assert job_of(replace(PLAIN, message_id=None), rules).key == "sha256:" + sha256(PLAIN.body).hexdigest()
    assert job_of(zipped, rules).key == job_of(replace(PLAIN, message_id=None), rules).key
    assert refusal_of(replace(PLAIN, message_id="a\nb"), rules).code is Code.MISSING_KEY


def test_the_payload_of_a_plain_message_is_left_to_the_child() -> None:
    assert job_of(replace(PLAIN, body=b"{not json")).body == b"{not json"


def test_the_depth_limit_of_a_queue_holds_for_envelopes() -> None:
    assert refusal_of(structured(data=[[[]]]), DecodeRules(max_depth=3)).code is Code.TOO_DEEP
    assert job_of(structured(data=[[[]]]), DecodeRules(max_depth=4))


# headers


def test_headers_that_producers_and_the_daemon_write_are_read() -> None:
    headers = {
        "submitted-at-ms": 1,
        "deadline-ms": 2,
        "not-before-ms": 3,
        "consumer-attempt": 4,
        "consumer-generation": 5,
        "traceparent": TRACEPARENT,
    }
    job = job_of(replace(PLAIN, headers=headers, timestamp_ms=99))
    assert (job.submitted_at, job.deadline, job.due, job.attempt, job.generation) == (1, 2, 3, 4, 5)
    assert job.traceparent == TRACEPARENT


def test_the_due_time_of_a_copy_wins_over_not_before() -> None:
    assert job_of(replace(PLAIN, headers={"not-before-ms": 3, "consumer-due-ms": 7})).due == 7


def test_the_timestamp_is_when_a_job_was_submitted_where_nothing_else_says() -> None:
    assert job_of(replace(PLAIN, timestamp_ms=99)).submitted_at == 99
    assert job_of(replace(structured(time="bad"), timestamp_ms=99)).submitted_at == 99
    assert job_of(replace(PLAIN, timestamp_ms=2**63)).submitted_at is None


# fingerprints


def test_the_order_of_names_and_the_form_make_no_other_fingerprint() -> None:
    bodies = [b'{"a":1,"b":2.0}', b' {"b": 2.0, "a": 1}', b'\xef\xbb\xbf{"a":1,"\\u0062":2.0}']
    prints = {job_of(replace(PLAIN, body=body)).fingerprint for body in bodies}
    prints.add(job_of(structured(data={"b": 2.0, "a": 1})).fingerprint)
    prints.add(job_of(Message(b'{"taskId":1,"payload":{"b":2.0,"a":1}}', type="a"), POINTERS).fingerprint)
    assert prints == {sha256(b'{"a":1,"b":2.0}').digest()}


def test_another_value_is_another_fingerprint() -> None:
    assert job_of(replace(PLAIN, body=b"1")).fingerprint != job_of(replace(PLAIN, body=b"1.0")).fingerprint


@pytest.mark.parametrize(
    "body",
    [
        b"{broken",
        b"\xff",
        b'"\\ud800"',
        b"[1e400]",
        b"[" * 9000 + b"]" * 9000,
        b"9" * 5000,
        b"",
        b'{"b":1, "a":"' + b"x" * CANONICAL_LIMIT + b'"}',
    ],
)
def test_a_body_that_can_not_be_read_cheaply_is_fingerprinted_by_its_bytes(body: bytes) -> None:
    assert job_of(replace(PLAIN, body=body)).fingerprint == sha256(body).digest()


def test_a_body_at_the_limit_is_still_fingerprinted_by_its_meaning() -> None:
    body = b'{"b":1, "a":"' + b"x" * (CANONICAL_LIMIT - 15) + b'"}'
    assert len(body) == CANONICAL_LIMIT
    assert job_of(replace(PLAIN, body=body)).fingerprint == sha256(canonical(json.loads(body))).digest()


# anything at all

JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=20)
    | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
TEXT = st.none() | st.text(st.characters(), max_size=30)
NAMES = st.sampled_from(
    [
        "submitted-at-ms",
        "deadline-ms",
        "not-before-ms",
        "idempotency-key",
        "traceparent",
        "consumer-attempt",
        "consumer-generation",
        "consumer-due-ms",
        "cloudEvents:id",
        "cloudEvents:source",
        "cloudEvents:type",
        "cloudEvents_id",
        "cloudEvents:time",
        "x-death",
    ]
)
EVENTS = st.dictionaries(
    st.sampled_from(["type", "source", "id", "data", "time", "traceparent", "taskId", "payload", "task"]),
    st.recursive(st.none() | st.integers() | st.text(max_size=9), st.lists, max_leaves=3),
).map(lambda event: json.dumps(event).encode())
MESSAGES = st.builds(
    Message,
    body=st.binary(max_size=50) | EVENTS | EVENTS.map(gzip.compress),
    headers=st.dictionaries(NAMES | st.text(max_size=9), JUNK, max_size=6),
    content_type=TEXT | st.sampled_from(["application/json", "application/cloudevents+json"]),
    content_encoding=TEXT | st.sampled_from(["gzip", "deflate", "identity"]),
    type=TEXT,
    message_id=TEXT,
    timestamp_ms=st.none() | st.integers(),
)


CONTROL = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))}


@given(MESSAGES, st.sampled_from([RULES, POINTERS, DecodeRules(missing_key="digest", default_kind="d")]))
def test_whatever_is_on_the_wire_becomes_a_job_or_a_refusal(message: Message, rules: DecodeRules) -> None:
    decoded = decode(message, rules)
    for name in (decoded.kind, decoded.key):
        assert name is None or (name.encode() and not set(name) & CONTROL)
    if isinstance(decoded, Job):
        assert 1 <= decoded.attempt <= 1000
        assert len(decoded.fingerprint) == 32
    else:
        assert decoded.code in MALFORMED
        decoded.detail.encode()
