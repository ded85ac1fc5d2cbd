"""A message as JSON text and back, with nothing lost: what AMQP has and JSON has not is written as a tagged object.

{"$bytes": base64}, {"$decimal": "1.10"}, {"$time": ISO 8601}, {"$float": "nan"}; and {"$table": {…}} for a table
that has one of these names itself.
"""

import binascii
import json
import math
from base64 import b64decode, b64encode
from dataclasses import fields
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from consumer.core.job import Message

TAG = "$"
PROPERTIES = {
    field.name: int if field.name in {"priority", "timestamp_ms"} else str
    for field in fields(Message)
    if field.name not in {"body", "headers"}
}
"""Every property of a message, with the type of its value where it has one."""


class NotExact(Exception):
    """What is wrong with a text that should be a message, as the end of a sentence."""


def headers_text(message: Message) -> str:
    return _dumped(_tagged(message.headers))


def properties_text(message: Message) -> str:
    """Those that the message has."""
    values = {name: getattr(message, name) for name in PROPERTIES}
    return _dumped({name: value for name, value in values.items() if value is not None})


def message_of(body: bytes, headers: str, properties: str) -> Message:
    """Of texts that were written here."""
    return Message(body, _untagged(json.loads(headers)), **json.loads(properties))


def checked(body: Any, headers: Any, properties: Any) -> Message:
    """Of parsed JSON that came from anywhere: a file may have been edited. Raises NotExact."""
    if not isinstance(headers, dict):
        raise NotExact("headers is no object")
    if not isinstance(properties, dict):
        raise NotExact("properties is no object")
    for name, value in properties.items():
        if name not in PROPERTIES:
            raise NotExact(f"properties has {ascii(name)[:40]}, which is none")
        if type(value) is not PROPERTIES[name]:
            raise NotExact(f"properties.{name} is not of type {PROPERTIES[name].__name__}")
    try:
        table, raw = _untagged(headers), _untagged(body)
    except (ValueError, TypeError, InvalidOperation, binascii.Error) as error:
        raise NotExact(f"a tagged value can't be read: {type(error).__name__}") from None
    if not isinstance(raw, bytes):
        raise NotExact('body is no {"$bytes": base64}')
    return Message(raw, table, **properties)


def tagged_bytes(value: bytes) -> dict[str, str]:
    return {"$bytes": b64encode(value).decode()}


def _tagged(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"$float": str(value)}
        case bytes() | bytearray():
            return tagged_bytes(bytes(value))
        case Decimal():
            return {"$decimal": str(value)}
        case datetime():
            return {"$time": value.isoformat()}
        case dict():
            table = {str(name): _tagged(item) for name, item in value.items()}
            return {"$table": table} if any(name.startswith(TAG) for name in table) else table
        case list() | tuple():
            return [_tagged(item) for item in value]
        case _:
            return str(value)  # as the publisher would write it


def _untagged(value: Any) -> Any:
    match value:
        case {"$bytes": text, **rest} if not rest:
            return b64decode(text, validate=True)
        case {"$decimal": text, **rest} if not rest:
            return Decimal(text)
        case {"$time": text, **rest} if not rest:
            return datetime.fromisoformat(text)
        case {"$float": text, **rest} if not rest:
            return float(text)
        case {"$table": dict() as table, **rest} if not rest:
            return {name: _untagged(item) for name, item in table.items()}
        case dict():
            return {name: _untagged(item) for name, item in value.items()}
        case list():
            return [_untagged(item) for item in value]
        case _:
            return value


def _dumped(value: Any) -> str:
    """In ASCII, so that neither NUL nor half of a surrogate pair is a reason for a database to refuse it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
