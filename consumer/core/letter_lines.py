"""A dead letter as one line of JSON and back: what `consumer dead export` writes and `import` reads."""

import json
import re
from dataclasses import dataclass, fields
from typing import Any

from consumer.core.exact import NotExact, checked, headers_text, properties_text, tagged_bytes
from consumer.core.job import Message
from consumer.core.letters import ID, Letter

FACTS = tuple(field.name for field in fields(Letter) if field.name != "message")


@dataclass(frozen=True, slots=True)
class Exported:
    """What counts of a line; all else in it is for people, and is found in the message again."""

    id: str
    queue: str
    code: str
    dead_at: int
    message: Message


def line_of(letter: Letter) -> str:
    facts: dict[str, Any] = {name: getattr(letter, name) for name in FACTS}
    facts["headers"] = json.loads(headers_text(letter.message))
    facts["properties"] = json.loads(properties_text(letter.message))
    facts["body"] = tagged_bytes(letter.message.body)
    return json.dumps(facts, ensure_ascii=True, separators=(",", ":"))


def exported(line: str) -> Exported:
    """Raise NotExact where it is no such line: a file may have been edited, or be another one."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise NotExact("it is not JSON") from None
    if not isinstance(said, dict):
        raise NotExact("it is no object")
    letter_id = said.get("id")
    if not isinstance(letter_id, str) or not re.fullmatch(ID, letter_id):
        raise NotExact("id is not one of a dead letter")
    for name, wanted in (("queue", str), ("code", str), ("dead_at", int)):
        if type(said.get(name)) is not wanted:
            raise NotExact(f"{name} is not of type {wanted.__name__}")
    message = checked(said.get("body"), said.get("headers"), said.get("properties"))
    return Exported(letter_id, said["queue"], said["code"], said["dead_at"], message)
