"""Hop 2: from what was on the wire to a job, or to the reason why it can't be one.

Strictness costs CPU and is paid where the payload is parsed, in the child. Here the body is parsed only where
the kind, the key or the payload must be looked up in it.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from consumer.core import fields
from consumer.core.content import STRUCTURED_EVENT, ContentError, media_type, unpack
from consumer.core.job import Job, Message, Refusal
from consumer.core.pointer import resolve
from consumer.core.strict_json import BOM, StrictJsonError, canonical, loads
from schemas import headers as names
from schemas.codes import Code

MAX_KIND = 200
MAX_KEY = 500
MAX_ATTEMPT = 1000
MAX_GENERATION = 2**31 - 1
CANONICAL_LIMIT = 64 * 1024
"""A longer body is fingerprinted byte for byte: parsing it here would hold up the loop."""

_KIND_WANTED = f"set the property type, or an event's type, to a text of at most {MAX_KIND} characters"
_KEY_WANTED = f"set the property message_id, or an event's source and id, to at most {MAX_KEY} characters"
_TOLERANT = json.JSONDecoder()
_EVENT_MARKS = frozenset(
    prefix + name
    for prefix in (names.CLOUDEVENTS_PREFIX, names.CLOUDEVENTS_PREFIX_ALT)
    for name in ("id", "specversion")
)


@dataclass(frozen=True, slots=True)
class DecodeRules:
    """What a queue accepts. `max_bytes` holds for the body on the wire and for the inflated one.

    The pointers are for producers that put kind, key or payload into the body; what a pointer doesn't find
    there is taken from the properties.
    """

    max_bytes: int = 16 * 1024 * 1024
    max_depth: int = 100
    missing_key: Literal["refuse", "digest"] = "refuse"
    default_kind: str | None = None
    kind_pointer: str | None = None
    key_pointer: str | None = None
    payload_pointer: str | None = None


class _Envelope(NamedTuple):
    """What a form says about its payload, unchecked: kind, key, time and traceparent may be anything.

    `lack` says what is wrong where there is no payload to run.
    """

    kind: Any
    key: Any
    payload: str
    fingerprint: bytes = b""
    time: Any = None
    traceparent: Any = None
    lack: str = ""


def decode(message: Message, rules: DecodeRules) -> Job | Refusal:
    try:
        media = media_type(message.content_type)
        body = unpack(message.body, message.content_encoding, rules.max_bytes)
        envelope = _open(message, media, body, rules)
    except (ContentError, StrictJsonError) as error:
        kind = fields.first(message.type, rules.default_kind)
        return _refuse(Code(error.code), error.detail, kind, _key(message, message.message_id))
    kind = fields.first(envelope.kind, rules.default_kind)
    key = _key(message, envelope.key)
    if key is None and rules.missing_key == "digest":
        key = "sha256:" + sha256(body).hexdigest()
    if flaw := fields.flaw(kind, MAX_KIND):
        return _refuse(Code.MISSING_KIND, f"the kind {flaw}: {_KIND_WANTED}", kind, key)
    if flaw := fields.flaw(key, MAX_KEY):
        return _refuse(Code.MISSING_KEY, f"the key {flaw}: {_KEY_WANTED}", kind, key)
    if envelope.lack:
        return _refuse(Code.INVALID_PAYLOAD, envelope.lack, kind, key)
    return _job(message, kind, key, body, envelope)


def _job(message: Message, kind: str, key: str, body: bytes, envelope: _Envelope) -> Job:
    header = message.headers.get
    return Job(
        kind=kind,
        key=key,
        body=body,
        payload=envelope.payload,
        attempt=fields.count(header(names.ATTEMPT), 1, MAX_ATTEMPT),
        generation=fields.count(header(names.GENERATION), 0, MAX_GENERATION),
        fingerprint=envelope.fingerprint,
        submitted_at=fields.first_time(header(names.SUBMITTED_AT), envelope.time, message.timestamp_ms),
        deadline=fields.first_time(header(names.DEADLINE)),
        due=fields.first_time(header(names.DUE), header(names.NOT_BEFORE)),
        since=fields.first_time(header(names.SINCE)),
        traceparent=fields.first_traceparent(envelope.traceparent, header(names.TRACEPARENT)),
    )


def _refuse(code: Code, detail: str, kind: Any, key: Any) -> Refusal:
    """With the kind and the key where they are known and fit to be shown and stored."""
    return Refusal(
        code,
        detail,
        kind=None if fields.flaw(kind, MAX_KIND) else kind,
        key=None if fields.flaw(key, MAX_KEY) else key,
    )


def _key(message: Message, found: Any) -> Any:
    return fields.first(message.headers.get(names.IDEMPOTENCY_KEY), found)


def _open(message: Message, media: str, body: bytes, rules: DecodeRules) -> _Envelope:
    if media == STRUCTURED_EVENT:
        return _structured_event(body, rules)
    if not _EVENT_MARKS.isdisjoint(message.headers):
        return _binary_event(message, body)
    if (rules.kind_pointer, rules.key_pointer, rules.payload_pointer) != (None, None, None):
        return _pointed(message, body, rules)
    return _Envelope(message.type, message.message_id, "", _fingerprint(body))


def _structured_event(body: bytes, rules: DecodeRules) -> _Envelope:
    event = loads(body, max_depth=rules.max_depth)
    if not isinstance(event, dict):
        return _Envelope(None, None, "/data", lack="the event is no object")
    envelope = _Envelope(
        kind=event.get("type"),
        key=_event_key(event.get("source"), event.get("id")),
        payload="/data",
        time=event.get("time"),
        traceparent=event.get("traceparent"),
    )
    if "data" in event:
        return envelope._replace(fingerprint=_meaning(event["data"]))
    binary = "data_base64" in event
    return envelope._replace(lack="data_base64 is not JSON: send data" if binary else "the event has no data")


def _binary_event(message: Message, body: bytes) -> _Envelope:
    def attribute(name: str) -> Any:
        return fields.first(
            message.headers.get(names.CLOUDEVENTS_PREFIX + name),
            message.headers.get(names.CLOUDEVENTS_PREFIX_ALT + name),
        )

    return _Envelope(
        kind=attribute("type"),
        key=_event_key(attribute("source"), attribute("id")),
        payload="",
        fingerprint=_fingerprint(body),
        time=attribute("time"),
        traceparent=attribute("traceparent"),
    )


def _event_key(source: Any, identity: Any) -> Any:
    """Source, a space, id. A URI holds no space, so no two events that differ in either share a key."""
    for part in (source, identity):
        if not part or not isinstance(part, str):
            return part or None
    return f"{source.replace(' ', '%20')} {identity}"


def _pointed(message: Message, body: bytes, rules: DecodeRules) -> _Envelope:
    document = loads(body, max_depth=rules.max_depth)
    envelope = _Envelope(
        kind=fields.first(_look_up(document, rules.kind_pointer), message.type),
        key=fields.first(_look_up(document, rules.key_pointer), message.message_id),
        payload=rules.payload_pointer or "",
    )
    try:
        return envelope._replace(fingerprint=_meaning(resolve(document, envelope.payload)))
    except LookupError:
        return envelope._replace(lack=f"the body has nothing at {envelope.payload}, where this queue's payload is")


def _look_up(document: Any, pointer: str | None) -> Any:
    try:
        return None if pointer is None else resolve(document, pointer)
    except LookupError:
        return None


def _fingerprint(body: bytes) -> bytes:
    """Of the payload's meaning where that is cheap to find out, else of its bytes."""
    if len(body) > CANONICAL_LIMIT:
        return sha256(body).digest()
    try:
        text = (body[3:] if body.startswith(BOM) else body).decode("utf-8")
        return _meaning(_TOLERANT.decode(text))
    except (ValueError, RecursionError):
        return sha256(body).digest()


def _meaning(payload: Any) -> bytes:
    return sha256(canonical(payload)).digest()
