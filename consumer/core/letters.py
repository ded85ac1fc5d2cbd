"""A dead letter as people work with it: what the index holds of one, and how that is found in its message.

The daemon that buries a letter and a look at the queue read the same message, so they say the same of it.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

from consumer.core import exact, fields
from consumer.core.deadletters import COUNTED, code_of, died_at
from consumer.core.job import Fault, Message
from consumer.core.topology import Topology
from consumer.core.verdict import Verdict
from schemas import headers

MESSAGE_LIMIT = 2_000
TRACEBACK_LIMIT = 8_000
TYPE_LIMIT = 200
COUNT_LIMIT = 2**31 - 1
ID_LENGTH = 20
"""Hexadecimal digits."""
ID = re.compile(f"[0-9a-f]{{{ID_LENGTH}}}")
GROUP_LENGTH = 12
GROUP = re.compile(f"[0-9a-f]{{{GROUP_LENGTH}}}")
_ANY = 2 ** (2 * ID_LENGTH)

_VARIABLE = re.compile(
    r"""(?<!\w)'[^']*'(?!\w) | "[^"]*" | `[^`]*`                        # quoted
      | \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b       # a UUID
      | \b0[xX][0-9a-fA-F]+\b | \b(?=[a-fA-F]*[0-9])[0-9a-fA-F]{6,}\b  # hexadecimal
      | \d+(?:[.,:]\d+)*                                               # numbers, times
    """,
    re.VERBOSE,
)


class State(StrEnum):
    """Where a letter is. Only the dead are in the queue; the index remembers the others for a while."""

    DEAD = "dead"
    REDRIVEN = "redriven"
    EDITED = "edited"
    PURGED = "purged"
    MISSING = "missing"  # somebody else took it out of the queue


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index lists. Times in epoch ms, size in bytes; `queue` is the short name of the work queue.

    `generation`: how often it was redriven before. `group`: fingerprint of its error. `state_at`: the newest
    word about its state, which goes before any older one, in whatever order they come.
    """

    id: str
    queue: str
    kind: str | None
    key: str | None
    code: str
    error_type: str
    error_message: str
    group: str
    dead_at: int
    first_failed_at: int
    last_failed_at: int
    attempts: int
    generation: int
    size: int
    state: State
    state_at: int


@dataclass(frozen=True, slots=True)
class Letter(Entry):
    """An entry with all that is behind it: the message as it is in the queue."""

    error_traceback: str
    message: Message


def id_for(verdict: Verdict, chance: Callable[[], float]) -> str:
    """A run's own, so that burying it twice makes one letter; any for a message that was refused without a run."""
    if verdict.claim is None or verdict.job is None:
        return f"{int(chance() * _ANY):0{ID_LENGTH // 2}x}{int(chance() * _ANY):0{ID_LENGTH // 2}x}"
    job = verdict.job
    return _digest(job.kind, job.key, verdict.generation, job.fingerprint.hex())[:ID_LENGTH]


def buried(copy: Message, topology: Topology, verdict: Verdict, fault: Fault, now: int) -> Letter:
    """The letter of a copy that we publish, with its traceback also where that doesn't fit into the headers."""
    letter = letter_of(copy, topology, (verdict.kind, verdict.key), now)
    return replace(letter, error_traceback=plain(fault.traceback, TRACEBACK_LIMIT))


def letter_of(message: Message, topology: Topology, name: tuple[str | None, str | None], now: int) -> Letter:
    """What a message of the dead-letter queue says. `name`: kind and key, where they can be read."""
    told = message.headers
    code = code_of(told, topology.work_queue)
    error_type = plain(told.get(headers.ERROR_TYPE, ""), TYPE_LIMIT)
    error_message = plain(told.get(headers.ERROR_MESSAGE, ""), MESSAGE_LIMIT)
    dead_at = _time(died_at(told), now)
    return Letter(
        id=_id_of(message),
        queue=topology.queue,
        kind=name[0],
        key=name[1],
        code=code,
        error_type=error_type,
        error_message=error_message,
        group=group_of(code, error_type, error_message),
        dead_at=dead_at,
        first_failed_at=_time(told.get(headers.FIRST_FAILED), dead_at),
        last_failed_at=_time(_last_failure(told.get(headers.HISTORY)), dead_at),
        attempts=fields.count(told.get(headers.ATTEMPT), 0, COUNT_LIMIT),
        generation=generation_of(message),
        size=len(message.body),
        state=State.DEAD,
        state_at=dead_at,
        error_traceback=plain(told.get(headers.ERROR_TRACEBACK, ""), TRACEBACK_LIMIT),
        message=message,
    )


def generation_of(message: Message) -> int:
    return fields.count(message.headers.get(headers.GENERATION), 0, COUNT_LIMIT)


def group_of(code: str, error_type: str, error_message: str) -> str:
    """The same for errors that differ only in what is particular to one job: numbers, ids, quoted parts."""
    return _digest(code, error_type, " ".join(_VARIABLE.sub("#", error_message).split()))[:GROUP_LENGTH]


def plain(text: Any, limit: int) -> str:
    """What every database and terminal takes: NUL and halves of surrogate pairs are shown as escapes."""
    return str(text)[:limit].replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _id_of(message: Message) -> str:
    """Its header; or, for what the broker gave up by itself, made of all that doesn't change while it lies there."""
    told = message.headers.get(headers.DEAD_ID)
    if isinstance(told, str) and ID.fullmatch(told):
        return told
    lasting = {name: item for name, item in message.headers.items() if name not in COUNTED}
    texts = exact.headers_text(Message(b"", lasting)), exact.properties_text(message)
    return _digest(*texts, sha256(message.body).hexdigest())[:ID_LENGTH]


def _time(value: Any, otherwise: int) -> int:
    time = fields.first_time(value)
    return otherwise if time is None else time


def _last_failure(history: Any) -> Any:
    try:
        return json.loads(history)[-1]["at"]
    except (TypeError, ValueError, LookupError, RecursionError):
        return None


def _digest(*parts: object) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()
