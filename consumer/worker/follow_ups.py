"""The jobs that a handler asks for: collected and checked in the child, carried to the parent before the result."""

import json
import re
from hashlib import sha256

from consumer.core.fields import flaw
from consumer.core.outbox import FollowUp
from consumer.core.strict_json import StrictJsonError, loads
from consumer.worker.json_text import json_text

MAX_KIND = 200
MAX_KIND_BYTES = 255
"""It travels in a property. A key that is too long for one finds place in a header."""
MAX_KEY = 500
MAX_QUEUE = 180
MOST = 1_000
MAX_BYTES = 1024 * 1024
FRAME_LIMIT = 8 * MAX_BYTES
"""More than all of it takes on the wire, with names and escapes."""
MAX_DELAY = 366 * 24 * 3600.0
_QUEUE = re.compile(r"[A-Za-z0-9_-]{1,60}(\.[A-Za-z0-9_-]{1,60})*")


class FollowUps:
    """Of one run. Everything is checked when it is asked for, so that the handler hears of it as a ValueError."""

    def __init__(self, kind: str, key: str) -> None:
        self._parent = (kind, key)
        self._asked: dict[tuple[str, str], FollowUp] = {}
        self._bytes = 0

    def add(self, kind: str, payload: object, key: str | None, delay: float, queue: str | None) -> None:
        if key is None:
            key = self._next_key()
        _check_names(kind, key, queue)
        if not (isinstance(delay, int | float) and 0 <= delay <= MAX_DELAY):
            raise ValueError(f"a follow-up waits for 0 to {MAX_DELAY:.0f} s, and not for {delay}")
        if (kind, key) == self._parent and queue is None:
            raise ValueError("a job can't ask for itself: its own kind and key are done by then, so give another key")
        if (kind, key) in self._asked:
            raise ValueError(
                f"the follow-up of kind {kind!r} and key {key!r} was asked for before: each has its own key"
            )
        text = _checked_json(payload)
        self._count(text)
        self._asked[kind, key] = FollowUp(kind, key, text, queue, round(delay * 1000))

    def encoded(self) -> bytes:
        """For the parent; nothing where nothing was asked for."""
        if not self._asked:
            return b""
        return json.dumps(
            [[each.kind, each.key, each.payload.decode(), each.queue, each.delay] for each in self._asked.values()],
            ensure_ascii=False,
        ).encode()

    def _next_key(self) -> str:
        """The same in every run of the same job, so that a second run asks for no second job."""
        key = "/".join((*self._parent, str(len(self._asked) + 1)))
        return key if len(key) <= MAX_KEY else sha256(key.encode()).hexdigest()

    def _count(self, text: bytes) -> None:
        total = self._bytes + len(text)
        if len(self._asked) == MOST:
            raise ValueError(f"a job may ask for {MOST} follow-ups, and this was one more")
        if total > MAX_BYTES:
            raise ValueError(f"the payloads of a job's follow-ups have {total} bytes, and may have {MAX_BYTES}")
        self._bytes = total


def decoded(text: bytes) -> tuple[FollowUp, ...]:
    """Raises TypeError or ValueError where it wasn't our code that wrote it."""
    return tuple(_follow_up(*fields) for fields in json.loads(text))


def _follow_up(kind: str, key: str, payload: str, queue: str | None, delay: int) -> FollowUp:
    _check_names(kind, key, queue)
    return FollowUp(kind, key, bytes(payload, "utf-8"), queue, int(delay))


def _check_names(kind: object, key: object, queue: object) -> None:
    for name, value, limit in (("kind", kind, MAX_KIND), ("key", key, MAX_KEY)):
        if fault := flaw(value or None, limit):
            raise ValueError(f"the {name} of a follow-up {fault}: it is text of 1 to {limit} characters")
    if len(str(kind).encode()) > MAX_KIND_BYTES:
        raise ValueError(f"the kind of a follow-up has more than the {MAX_KIND_BYTES} bytes of a property")
    if queue is not None and not (isinstance(queue, str) and len(queue) <= MAX_QUEUE and _QUEUE.fullmatch(queue)):
        raise ValueError("the queue of a follow-up is the short name of a work queue, such as 'default', or None")


def _checked_json(payload: object) -> bytes:
    """By the rules for results, and by those that the daemon which gets it goes by."""
    try:
        text = json_text(payload)
        loads(text)
    except StrictJsonError as error:
        raise ValueError(f"the payload of a follow-up can't be sent: {error.detail}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the payload of a follow-up isn't JSON ({type(error).__name__})") from error
    return text
