"""One run in a child: what its handler is given, and what must be done when it is over. For both sorts of children."""

import fcntl
import os
import socket
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from consumer.worker import process, scratch
from consumer.worker.context import JobContext
from consumer.worker.failure import printable
from consumer.worker.prints import Prints, Records
from consumer.worker.progress import Progress
from consumer.worker.voice import Speaker, Voice
from consumer.worker.wire import SMALL, Type, head, mark

NOTE_LIMIT = 200
_NO_BYTES = bytes(4)


class Backstage:
    """What the runs of a child have in common. `place` is where folders are made for them.

    `one_by_one`: runs don't overlap. `output` is a descriptor of the pipe that is this process's standard output;
    jobs don't know it.
    """

    def __init__(self, voice: Voice, prints: Prints, output: int, place: str, *, one_by_one: bool) -> None:
        self.voice = voice
        self.prints = prints
        self.place = place
        self.pid = os.getpid()
        self._output = output
        self._one_by_one = one_by_one

    @classmethod
    def in_child(cls, tickets: socket.socket, log_limit: int, place: str, *, one_by_one: bool) -> "Backstage":
        voice = Voice(tickets, log_limit)
        Records.speak_with(voice)
        process.write_c_lines_at_once()
        return cls(voice, Prints(voice), os.dup(1), place, one_by_one=one_by_one)

    def is_output_waiting(self) -> bool:
        """Whether somebody wrote beside Python what the parent has not read yet. It needn't ask, which costs more."""
        return fcntl.ioctl(self._output, termios.FIONREAD, _NO_BYTES) != _NO_BYTES

    def mark_output(self, job_id: int) -> None:
        """What is written from now on is of another run."""
        if self._one_by_one and os.getpid() == self.pid:
            os.write(self._output, mark(job_id))

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
        self._backstage.voice.give_to(self._speaker)
        self._backstage.prints.flush()
        self._speaker.finish()
        if self._progress is not None:
            self._progress.close()
        if self._folder is not None and os.getpid() == self._backstage.pid:  # not where the handler forked
            scratch.remove(str(self._folder))

    def preface(self, *, succeeded: bool, length: int = 0) -> bytes:
        """The frames that go before the report. `length` of that: the next run may write before it is all heard."""
        frames = head(Type.SPOKE, self._job_id) if self._speaker.spoke else b""
        waiting = self._backstage.is_output_waiting()
        if waiting or length > SMALL:
            self._backstage.mark_output(self._job_id)
        if waiting:
            frames += head(Type.WROTE, self._job_id)
        follow_ups = self.context.follow_ups
        if succeeded and follow_ups is not None and (text := follow_ups.encoded()):
            frames += head(Type.FOLLOW_UPS, self._job_id, b"", len(text)) + text
        return frames
