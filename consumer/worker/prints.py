"""Python's standard output and logging in a child, so that each line is said by the job that wrote it."""

import io
import logging
import sys
from typing import Any

from consumer.worker.voice import Voice


class Prints:
    """`sys.stdout` and `sys.stderr`; and again after each run, for a job may close or replace them."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._files = self._opened()
        self.restore()

    def restore(self) -> None:
        sys.stdout, sys.stderr = self._files
        sys.__stdout__, sys.__stderr__ = self._files  # type: ignore[misc]

    def flush(self) -> None:
        """At the end of a run, in its context: what it did not end with a line feed."""
        try:
            for file in self._files:
                file.flush()
        except ValueError:  # closed
            self._files = self._opened()
        if sys.stdout is not self._files[0] or sys.stderr is not self._files[1]:
            self.restore()

    def _opened(self) -> tuple[io.TextIOWrapper, io.TextIOWrapper]:
        return _text(_Paper(self._voice, "stdout", 1)), _text(_Paper(self._voice, "stderr", 2))


def _text(paper: "_Paper") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(paper), encoding="utf-8", errors="backslashreplace", line_buffering=True)


class _Paper(io.RawIOBase):
    """What is written here is said. `fileno` is the real one, for those who give it to a program that they start."""

    def __init__(self, voice: Voice, stream: str, descriptor: int) -> None:
        self._voice = voice
        self._stream = stream
        self._descriptor = descriptor

    @property
    def name(self) -> str:
        return f"<{self._stream}>"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return False

    def write(self, data: Any) -> int:
        self._voice.speaker.write(self._stream, data)
        return len(data)


class Records(logging.Handler):
    """On the root logger from before the job modules are imported, so that their `basicConfig` changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.voice: Voice | None = None

    def createLock(self) -> None:  # noqa: N802 - it is called so there
        """None is needed, and one that a timeout left locked would be the end of all threads of later jobs."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> Any:
        """As in Python, which since 3.13 does it with the lock only."""
        kept = self.filter(record)
        if kept:
            self.emit(kept if isinstance(kept, logging.LogRecord) else record)
        return kept

    @classmethod
    def install(cls, level: int) -> "Records":
        records = cls()
        logging.root.addHandler(records)
        logging.root.setLevel(level)
        return records

    @staticmethod
    def speak_with(voice: Voice) -> None:
        """From now on, in this process. There is nothing to do where job modules set up their own logging instead."""
        for handler in logging.root.handlers:
            if isinstance(handler, Records):
                handler.voice = voice

    def emit(self, record: logging.LogRecord) -> None:
        speaker = self.voice.speaker if self.voice is not None else None
        if speaker is not None and speaker.silenced:
            return
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - the arguments are the user's, and so is how they show
            self.handleError(record)
            return
        if speaker is None:  # at the import: there is no child yet
            sys.stderr.write(f"{record.levelname} {record.name}: {text}\n")
        else:
            speaker.log(record.name, record.levelno, text)
