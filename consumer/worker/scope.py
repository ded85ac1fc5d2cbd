"""One run in a child: what its handler is given, and what must be done when it is over. For both sorts of children."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from consumer.worker import scratch
from consumer.worker.context import JobContext
from consumer.worker.failure import printable
from consumer.worker.progress import Progress
from consumer.worker.voice import Speaker, Voice
from consumer.worker.wire import Type, head

NOTE_LIMIT = 200


class Backstage:
    """What the runs of a child have in common. `place` is where the folders of their own are made."""

    def __init__(self, voice: Voice, place: str) -> None:
        self.voice = voice
        self.place = place
        self.pid = os.getpid()

    def enter(self, job_id: int, order: Mapping[str, Any], expires: float, cancelled: Callable[[], bool]) -> "Scope":
        """A run begins, in the present context (of contextvars). `cancelled` asks whether the parent said so."""
        return Scope(self, job_id, order, expires, cancelled)


class Scope:
    """The stage of one context."""

    def __init__(
        self,
        backstage: Backstage,
        job_id: int,
        order: Mapping[str, Any],
        expires: float,
        cancelled: Callable[[], bool],
    ) -> None:
        self.cancelled = cancelled
        self.context = JobContext(order["kind"], order["key"], order["attempt"], order["deadline"], expires, self)
        self._backstage = backstage
        self._job_id = job_id
        self._speaker: Speaker = backstage.voice.begin(job_id)
        self._progress: Progress | None = None
        self._folder: Path | None = None

    def progressed(self, fraction: float, note: str) -> None:
        if self._progress is None:
            self._progress = Progress(self._speaker.progressed)
        self._progress.is_at(fraction, printable(note, NOTE_LIMIT))

    def folder(self) -> Path:
        self._folder = scratch.make(self._backstage.place)
        return self._folder

    def close(self) -> None:
        """Whatever happened. Before the report, so that a job pays itself for what it leaves behind."""
        if self._progress is not None:
            self._progress.close()
        if self._folder is not None and os.getpid() == self._backstage.pid:  # not where the handler forked
            scratch.remove(str(self._folder))

    def preface(self, *, succeeded: bool) -> bytes:
        """The frames that go before the report."""
        frames = head(Type.SPOKE, self._job_id) if self._speaker.spoke else b""
        follow_ups = self.context.follow_ups
        if succeeded and follow_ups is not None:
            text = follow_ups.encoded()
            frames += head(Type.FOLLOW_UPS, self._job_id, b"", len(text)) + text
        return frames
