"""What a test can ask about afterwards: runs, dead letters, and all that was published."""

import json
from dataclasses import dataclass
from typing import Any

from consumer.core.decode import DecodeRules, decode
from consumer.core.disposition import Settlement
from consumer.core.errors import Unavailable
from consumer.core.job import Message
from consumer.core.letters import letter_of
from consumer.core.ports import Clock, Delivery, Parcel
from consumer.core.topology import Topology
from consumer.core.verdict import Verdict
from consumer.testing.outcome import RunOutcome, outcome_of
from consumer.testing.places import Places


@dataclass(frozen=True, slots=True)
class Published:
    """`target`: retry (also of what was put off), dead_letter or follow_up. `queue`: its short name.

    `payload`: as JSON where it is any, else the bytes.
    """

    target: str
    queue: str
    kind: str | None
    key: str | None
    payload: Any
    message: Message


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`payload` as in Published; `error_type`, `error` and `attempts` as `consumer dead` shows them."""

    kind: str | None
    key: str | None
    payload: Any
    code: str
    error_type: str
    error: str
    attempts: int
    message: Message


class Diary:
    """The pipeline's journal, of which tests read."""

    def __init__(self, places: Places, clock: Clock) -> None:
        self.runs: list[RunOutcome] = []
        self.latest = ""
        self._places = places
        self._clock = clock

    def settled(self, _: Delivery, verdict: Verdict, __: Settlement, ___: bool) -> None:
        self.latest = f"the last of it was {verdict.kind} {verdict.key!r}, and {verdict.disposition}"
        ran = self._places.last
        if ran is not None and verdict.outcome is ran.outcome:
            assert verdict.job is not None, "only a job is run"
            name = (verdict.job.kind, verdict.job.key, verdict.attempt)
            self.runs.append(outcome_of(name, verdict.disposition, ran, self._clock()))

    def trip(self, error: Unavailable) -> None:
        """Nothing here can be away, so it is a bug, and the test must see it."""
        raise error


def published(parcel: Parcel) -> Published:
    kind, key = _name(parcel.message)
    queue = parcel.routing_key.rpartition(".")[2]
    return Published(parcel.target, queue, kind, key, _payload(parcel.message), parcel.message)


def dead_letter(message: Message, topology: Topology, now: int) -> DeadLetter:
    kind, key = _name(message)
    letter = letter_of(message, topology, (kind, key), now)
    return DeadLetter(
        kind,
        key,
        _payload(message),
        letter.code,
        letter.error_type,
        letter.error_message,
        letter.attempts,
        message,
    )


def _name(message: Message) -> tuple[str | None, str | None]:
    job = decode(message, DecodeRules())
    return job.kind, job.key


def _payload(message: Message) -> Any:
    try:
        return json.loads(message.body)
    except ValueError:
        return message.body
