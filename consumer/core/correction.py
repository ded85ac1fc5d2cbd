"""A dead letter with another payload in it: the same message otherwise, ready to be sent to work."""

import json
from dataclasses import replace

from consumer.core.content import JSON, unpack
from consumer.core.decode import DecodeRules, decode
from consumer.core.job import Job, Message
from consumer.core.pointer import parse, resolve
from consumer.core.strict_json import BOM, loads

_MARK = "\x00the new payload"
"""No body holds this text as it is: JSON writes NUL as an escape."""


def corrected(message: Message, payload: bytes, rules: DecodeRules) -> Message:
    """`payload` is JSON, and takes the place of the old one in its body; of a body that can't be read, all of it."""
    payload = payload.removeprefix(BOM)
    before = decode(message, rules)
    if not isinstance(before, Job):
        return replace(message, body=payload, content_encoding=None, content_type=JSON)
    if not before.payload:
        return replace(message, body=payload, content_encoding=None)
    body = unpack(message.body, message.content_encoding, rules.max_bytes)
    return replace(message, body=_with(body, before.payload, payload, rules.max_depth), content_encoding=None)


def _with(body: bytes, pointer: str, payload: bytes, max_depth: int) -> bytes:
    """The payload as the very text that it is, so that no number in it is rounded."""
    document = loads(body, max_depth=max_depth)
    *way, last = parse(pointer)
    inside = resolve(document, "".join(f"/{name.replace('~', '~0').replace('/', '~1')}" for name in way))
    inside[int(last) if isinstance(inside, list) else last] = _MARK
    text = json.dumps(document, ensure_ascii=False)
    return text.replace(json.dumps(_MARK, ensure_ascii=False), payload.decode(), 1).encode()
