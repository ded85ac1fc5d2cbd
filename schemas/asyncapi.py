"""The AsyncAPI 3 document: which messages go where. Namespace `jobs` and queue `default` are the defaults."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from schemas.cloudevent import CloudEvent
from schemas.dead_letter import DeadLetterHeaders
from schemas.job import JobHeaders
from schemas.payloads import PAYLOADS

NAMESPACE = "jobs"
_BINDING = "0.3.0"
_MODELS: tuple[type[BaseModel], ...] = (JobHeaders, CloudEvent, DeadLetterHeaders, *PAYLOADS.values())


def document() -> dict[str, Any]:
    _, definitions = models_json_schema(
        [(model, "validation") for model in _MODELS], ref_template="#/components/schemas/{model}"
    )
    messages = _messages()
    work = [name for name in messages if name != "deadLetter"]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "consumer",
            "version": "1.0.0",
            "description": "Jobs that the daemon takes from RabbitMQ, and what it dead-letters. See docs/messages.md.",
        },
        "defaultContentType": "application/json",
        "channels": {"work": _work_channel(work), "dead": _dead_channel()},
        "operations": {
            "takeJob": _operation("receive", "work", work),
            "buryJob": _operation("send", "dead", ["deadLetter"]),
        },
        "components": {"messages": messages, "schemas": definitions["$defs"]},
    }


def _messages() -> dict[str, Any]:
    plain = {kind: _plain(kind, model) for kind, model in PAYLOADS.items()}
    return {
        **plain,
        "event": {
            "title": "A job as a CloudEvent",
            "description": "type = kind, source and id = key, data = payload.",
            "contentType": "application/cloudevents+json",
            "payload": _ref("schemas", CloudEvent.__name__),
        },
        "deadLetter": {
            "title": "A job that was given up",
            "description": "Body and properties are the producer's; the headers say what happened.",
            "headers": _ref("schemas", DeadLetterHeaders.__name__),
        },
    }


def _plain(kind: str, model: type[BaseModel]) -> dict[str, Any]:
    return {
        "title": f"A job of kind {kind}",
        "description": f"Property type = {kind}, property message_id = key, body = payload.",
        "headers": _ref("schemas", JobHeaders.__name__),
        "payload": _ref("schemas", model.__name__),
        "bindings": {"amqp": {"messageType": kind, "bindingVersion": _BINDING}},
    }


def _work_channel(messages: list[str]) -> dict[str, Any]:
    exchange = {"name": NAMESPACE, "type": "direct", "durable": True, "autoDelete": False}
    return {
        "address": "{queue}",
        "description": "The routing key is the queue's name.",
        "parameters": {"queue": _QUEUE},
        "messages": {name: _ref("messages", name) for name in messages},
        "bindings": {"amqp": {"is": "routingKey", "exchange": exchange, "bindingVersion": _BINDING}},
    }


def _dead_channel() -> dict[str, Any]:
    queue = {"name": f"{NAMESPACE}.default.dead", "durable": True, "exclusive": False, "autoDelete": False}
    return {
        "address": NAMESPACE + ".{queue}.dead",
        "parameters": {"queue": _QUEUE},
        "messages": {"deadLetter": _ref("messages", "deadLetter")},
        "bindings": {"amqp": {"is": "queue", "queue": queue, "bindingVersion": _BINDING}},
    }


_QUEUE = {"description": "The name of the work queue, without its namespace.", "default": "default"}


def _operation(action: str, channel: str, messages: list[str]) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in messages],
    }


def _ref(section: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{section}/{name}"}
