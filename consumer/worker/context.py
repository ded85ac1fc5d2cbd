"""What a handler may know of its run, and do while it lasts."""

import logging
import math
import time
from pathlib import Path
from typing import Protocol

from consumer.worker.follow_ups import FollowUps

JOB_LOGGER = "consumer.job"


class Stage(Protocol):
    """What stands behind a context: a child of the pool, or a test."""

    def progressed(self, fraction: float, note: str) -> None: ...
    def cancelled(self) -> bool: ...

    def folder(self) -> Path:
        """Make a folder that goes when the run is over."""
        ...


class JobContext:
    """`deadline` is epoch ms; `expires` is on `time.monotonic()`'s clock."""

    __slots__ = ("_logger", "_stage", "_tempdir", "attempt", "deadline", "expires", "follow_ups", "key", "kind")

    def __init__(self, kind: str, key: str, attempt: int, deadline: int | None, expires: float, stage: Stage) -> None:
        self.kind = kind
        self.key = key
        self.attempt = attempt
        self.deadline = deadline
        self.expires = expires
        self.follow_ups: FollowUps | None = None
        self._stage = stage
        self._logger: logging.LoggerAdapter[logging.Logger] | None = None
        self._tempdir: Path | None = None

    def __repr__(self) -> str:
        return f"JobContext(kind={self.kind!r}, key={self.key!r}, attempt={self.attempt})"

    def time_left(self) -> float:
        """Seconds until the execution timeout or the deadline, whichever is first; never below 0."""
        left = self.expires - time.monotonic()
        if self.deadline is not None:
            left = min(left, self.deadline / 1000 - time.time())
        return max(0.0, left)

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled the job: stop soon. What the run returns or raises counts no more."""
        return self._stage.cancelled()

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """Its lines stand in the daemon's log with the kind, key and attempt of the job; so do those of all others."""
        if self._logger is None:
            about = {"kind": self.kind, "key": self.key, "attempt": self.attempt}
            self._logger = logging.LoggerAdapter(logging.getLogger(JOB_LOGGER), about)
        return self._logger

    @property
    def tempdir(self) -> Path:
        """A folder of this run alone, made when it is first asked for, and removed when the run is over."""
        if self._tempdir is None:
            self._tempdir = self._stage.folder()
        return self._tempdir

    def progress(self, fraction: float, note: str = "") -> None:
        """Tell people how far the job is, 0 to 1. Call it as often as you like: they see the latest."""
        if not isinstance(note, str):
            raise ValueError(f"the note of a job's progress is text, and not {type(note).__name__}")  # noqa: TRY004
        try:
            number = float(fraction)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not 0 <= number <= 1:
            raise ValueError("the progress of a job is a number from 0 to 1")
        self._stage.progressed(number, note)

    def send(
        self, kind: str, payload: object, *, key: str | None = None, delay: float = 0.0, queue: str | None = None
    ) -> None:
        """Ask for another job. It is written together with this one's result: both are there, or neither.

        `delay` in seconds. Without a key it gets the same one in every run, made of this job's kind and key and
        its number among the follow-ups.
        """
        if self.follow_ups is None:
            self.follow_ups = FollowUps(self.kind, self.key)
        self.follow_ups.add(kind, payload, key, delay, queue)
