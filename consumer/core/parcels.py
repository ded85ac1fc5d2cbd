"""The copies that we publish: the same bytes and properties, our own account in the headers.

A copy never carries what brokers wrote (x-death and friends: some brokers drop a message that seems to go in
circles), nor an expiration (it would cut a wait short), nor a user id (the broker compares it with ours and
closes the channel).
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from consumer.core.admission import UNKNOWN_KIND, unknown_since
from consumer.core.disposition import Defer, Retry
from consumer.core.job import Fault, Job, Message
from consumer.core.ports import Parcel
from consumer.core.row import HISTORY_LIMIT
from consumer.core.topology import Topology
from schemas import headers

HEADER_BUDGET = 64 * 1024
"""Bytes. A frame holds 128 KiB, and a header that doesn't fit into one frame costs the connection."""
_BROKER_KEYS = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count", "x-opt-")

_OF_THE_DEAD = frozenset(
    {
        headers.ATTEMPT,
        headers.DUE,
        headers.UNKNOWN_SINCE,
        headers.SINCE,
        headers.CODE,
        headers.ERROR_TYPE,
        headers.ERROR_MESSAGE,
        headers.ERROR_TRACEBACK,
        headers.DEAD_AT,
        headers.DEAD_ID,
        headers.DROPPED,
    }
)
"""What a dead letter doesn't take along when it goes back to work."""


@dataclass(frozen=True, slots=True)
class Copier:
    """Knows where copies go, and in whose name they are written. `pod` names this process."""

    topology: Topology
    pod: str

    def retry(self, message: Message, job: Job, attempt: int, retry: Retry, now: int) -> Parcel:
        """A copy for the next attempt, due at `retry.due`; `attempt` is the one that failed."""
        account = {
            **kept_headers(message),
            headers.ATTEMPT: retry.attempt,
            headers.GENERATION: job.generation,
            headers.DUE: retry.due,
            headers.SINCE: job.since,
            headers.UNKNOWN_SINCE: None,
            **self._failed(message, attempt, retry.fault, now),
        }
        return self._delayed(message, account, retry.due - now)

    def defer(self, message: Message, job: Job, put_off: Defer, now: int) -> Parcel:
        """An unchanged copy that comes back when it is due; nobody is charged."""
        account = {**kept_headers(message), headers.DUE: put_off.due, headers.SINCE: job.since}
        if put_off.reason == UNKNOWN_KIND:
            account[headers.UNKNOWN_SINCE] = unknown_since(message, now)
        return self._delayed(message, account, put_off.due - now)

    def dead(
        self, message: Message, fault: Fault, attempt: int, now: int, letter_id: str, generation: int = 0
    ) -> Parcel:
        """A copy for the dead-letter queue, with what a person needs to know about it."""
        account = {
            **kept_headers(message),
            headers.ATTEMPT: attempt,
            headers.GENERATION: generation,
            headers.CODE: str(fault.code),
            headers.ERROR_TYPE: fault.error_type,
            headers.ERROR_MESSAGE: fault.message,
            headers.ERROR_TRACEBACK: fault.traceback,
            headers.DEAD_AT: now,
            headers.DEAD_ID: letter_id,
            **self._failed(message, attempt, fault, now),
        }
        account.pop(headers.DUE, None)
        return self._buried(message, account)

    def redrive(self, message: Message) -> Parcel:
        """A dead letter back to work: attempts count anew in the next generation, its history stays."""
        generation = message.headers.get(headers.GENERATION)
        account = {name: value for name, value in kept_headers(message).items() if name not in _OF_THE_DEAD}
        account[headers.GENERATION] = (generation if type(generation) is int else 0) + 1
        return Parcel(self.topology.namespace, self.topology.queue, _copy(message, account), "submit")

    def home(self, message: Message) -> Parcel:
        """A stray to the work queue that it was for. Whether it is due now is seen there."""
        return Parcel(self.topology.namespace, self.topology.queue, _copy(message, kept_headers(message)), "retry")

    def back(self, message: Message, letter_id: str, code: str, dead_at: int) -> Parcel:
        """A letter that was taken away, as it was. What only the broker said of it before is in our words now."""
        account = {headers.CODE: code, headers.DEAD_AT: dead_at, **kept_headers(message), headers.DEAD_ID: letter_id}
        return self._buried(message, account)

    def _buried(self, message: Message, account: dict[str, Any]) -> Parcel:
        return Parcel(self.topology.dead_exchange, self.topology.queue, _copy(message, account), "dead_letter")

    def _delayed(self, message: Message, account: dict[str, Any], wait: int) -> Parcel:
        exchange, routing_key = self.topology.ladder.route(wait, self.topology.queue)
        known = {name: value for name, value in account.items() if value is not None}
        return Parcel(exchange, routing_key, _copy(message, known), "retry")

    def _failed(self, message: Message, attempt: int, fault: Fault, now: int) -> dict[str, Any]:
        line = {
            "attempt": attempt,
            "at": now,
            "code": str(fault.code),
            "error": f"{fault.error_type}: {fault.message}"[:200],
            "pod": self.pod,
        }
        past = _history(message.headers.get(headers.HISTORY))
        return {
            headers.ORIGIN: message.headers.get(headers.ORIGIN, self.topology.work_queue),
            headers.FIRST_FAILED: message.headers.get(headers.FIRST_FAILED, now),
            headers.HISTORY: json.dumps([*past, line][-HISTORY_LIMIT:]),
        }


def kept_headers(message: Message) -> dict[str, Any]:
    """Its headers, but those that brokers wrote."""
    return {name: value for name, value in message.headers.items() if not name.startswith(_BROKER_KEYS)}


def _history(text: Any) -> list[Any]:
    """Whatever the header holds, a list: producers can write headers too."""
    try:
        past = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return []
    return past if isinstance(past, list) else []


def _copy(message: Message, account: dict[str, Any]) -> Message:
    return replace(message, headers=_fitted(account), expiration=None, user_id=None)


def _fitted(account: dict[str, Any]) -> dict[str, Any]:
    """Where all of them don't fit into a frame, take the most useful headers that do, and name the others."""
    size = {name: _size(name) + _size(value) for name, value in account.items()}
    if sum(size.values()) <= HEADER_BUDGET:
        return account
    last = [name for name in (headers.HISTORY, headers.ERROR_TRACEBACK) if name in account]
    ours = [name for name in account if name.startswith(headers.OURS_PREFIX) and name not in last]
    foreign = sorted(account.keys() - {*ours, *last}, key=size.__getitem__)
    kept, room = set(ours), HEADER_BUDGET - sum(size[name] for name in ours)
    for name in (*foreign, *last):
        if size[name] <= room:
            kept.add(name)
            room -= size[name]
    dropped = ",".join(name for name in account if name not in kept)
    return {**{name: value for name, value in account.items() if name in kept}, headers.DROPPED: dropped[:1000]}


def _size(value: Any) -> int:
    match value:
        case str():
            return len(value.encode("utf-8", "surrogatepass")) + 5
        case bytes():
            return len(value) + 5
        case dict():
            return sum(_size(name) + _size(item) for name, item in value.items()) + 5
        case list():
            return sum(_size(item) for item in value) + 5
        case _:
            return 9
