"""What came of one run, as a test looks at it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from consumer.core import outbox as core
from consumer.core.disposition import Complete, DeadLetter, Defer, Disposition, Retry
from consumer.core.job import Fault
from consumer.core.outcome import Failed
from consumer.testing.rehearsal import Ran
from consumer.testing.stage import LogLine, ProgressMark
from schemas.codes import Code

SHOWN = 100
"""Characters of a result in the story of a run."""
Status = Literal["succeeded", "retry", "put_off", "dead_letter", "cancelled"]


class Told(str):
    """A text that knows what it is about: pytest's own words for two different texts don't say that."""

    __slots__ = ("story",)
    story: str

    @classmethod
    def of(cls, text: str, story: str) -> "Told":
        told = cls(text)
        told.story = story
        return told


class FollowUp(NamedTuple):
    """A job that the run asked for. `delay` in seconds; `queue` None: its own."""

    kind: str
    key: str
    payload: Any
    delay: float
    queue: str | None


@dataclass(frozen=True, slots=True, repr=False)
class RunOutcome:
    """`status`: what becomes of the job.

    succeeded    `result` is stored, and the follow-ups are sent
    retry        it failed, and runs again in `retry_in` seconds, as the next attempt
    put_off      what it needs is down: it runs again in `retry_in` seconds, as the same attempt
    dead_letter  it goes to the dead-letter queue; `code` says why
    cancelled    somebody had cancelled it: what it returned or raised doesn't count

    `error_type`, `error` and `traceback` are what people will see, `exception` is the error itself.
    """

    kind: str
    key: str
    attempt: int
    status: Status
    result: Any = None
    code: str | None = None
    error_type: str | None = None
    error: str | None = None
    traceback: str = ""
    retry_in: float | None = None
    follow_ups: tuple[FollowUp, ...] = ()
    progress: tuple[ProgressMark, ...] = ()
    logs: tuple[LogLine, ...] = ()
    tempdir: Path | None = None
    exception: BaseException | None = None

    def __post_init__(self) -> None:
        for name in ("status", "code"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, Told.of(text, self._story()))

    def __repr__(self) -> str:
        return f"<{self._story()}>"

    def expect(self, wanted: str) -> "RunOutcome":
        """Return this outcome if it has the status, or the code, that is wanted; fail the test otherwise.

        The failure shows the handler's own error too.
        """
        __tracebackhide__ = True
        if wanted in (self.status, self.code):
            return self
        if wanted not in (*get_args(Status), *Code):
            known = ", ".join(get_args(Status))
            raise ValueError(f"nothing can end as {wanted!r}: expect one of {known}, or the code of a dead letter")
        raise AssertionError(f"expected {wanted}, but {self._story()}") from self.exception

    def _story(self) -> str:
        ended = {
            "succeeded": f"succeeded with {_short(self.result)}",
            "retry": f"failed, and is retried in {self.retry_in} s",
            "put_off": f"was put off for {self.retry_in} s",
            "dead_letter": f"became a dead letter ({self.code})",
            "cancelled": "was cancelled",
        }[self.status]
        why = f": {self.error_type}: {self.error}" if self.error_type else ""
        return f"attempt {self.attempt} of {self.kind} {self.key!r} {ended}{why}"


def outcome_of(name: tuple[str, str, int], disposition: Disposition, ran: Ran | None, now: int) -> RunOutcome:
    """`name`: kind, key and attempt; `ran`: the run, if it came to that; `now`: when it was decided, in epoch ms."""
    kind, key, attempt = name
    status, facts = _decided(disposition, ran, now)
    if ran is not None:
        facts |= {"progress": ran.progress, "logs": ran.logs, "tempdir": ran.tempdir, "exception": ran.exception}
    return RunOutcome(kind, key, attempt, status, **facts)


def _decided(disposition: Disposition, ran: Ran | None, now: int) -> tuple[Status, dict[str, Any]]:
    match disposition:
        case Complete(done):
            return "succeeded", {"result": json.loads(done.result), "follow_ups": tuple(map(_shown, done.follow_ups))}
        case Retry(due=due, fault=fault):
            return "retry", {"retry_in": (due - now) / 1000} | _told(fault)
        case Defer(due=due):
            failed = ran.outcome if ran is not None else None
            return "put_off", {"retry_in": (due - now) / 1000} | (
                _told(failed.fault) if isinstance(failed, Failed) else {}
            )
        case DeadLetter(fault):
            return "dead_letter", {"code": str(fault.code)} | _told(fault)
        case _:
            return "cancelled", {}


def _shown(asked: core.FollowUp) -> FollowUp:
    return FollowUp(asked.kind, asked.key, json.loads(asked.payload), asked.delay / 1000, asked.queue)


def _told(fault: Fault) -> dict[str, Any]:
    return {"error_type": fault.error_type, "error": fault.message, "traceback": fault.traceback}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
