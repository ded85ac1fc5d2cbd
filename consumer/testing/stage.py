"""What stands behind the context of a run in a test: it notes what the handler says."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from consumer.worker import scratch
from consumer.worker.config import PoolConfig
from consumer.worker.failure import printable
from consumer.worker.scope import NOTE_LIMIT

DEFAULTS = PoolConfig(())
"""The limits that a daemon has where nobody set others."""


class ProgressMark(NamedTuple):
    fraction: float
    note: str


class LogLine(NamedTuple):
    level: str
    text: str
    logger: str


class NotedStage:
    """Every mark is kept, where a daemon shows people the latest. `tempdir` is there as long as the run."""

    def __init__(self, *, cancelled: bool) -> None:
        self.progress: list[ProgressMark] = []
        self.tempdir: Path | None = None
        self._cancelled = cancelled

    def progressed(self, fraction: float, note: str) -> None:
        self.progress.append(ProgressMark(fraction, printable(note, NOTE_LIMIT)))

    def cancel(self) -> None:
        self._cancelled = True

    def cancelled(self) -> bool:
        return self._cancelled

    def folder(self) -> Path:
        self.tempdir = Path(tempfile.mkdtemp(prefix="consumer-test-"))
        return self.tempdir

    def close(self) -> None:
        if self.tempdir is not None:
            scratch.remove(str(self.tempdir))


@contextmanager
def heard(lines: list[LogLine]) -> Iterator[None]:
    """Note what is logged meanwhile, by any logger, at the level that a daemon has by default."""
    root, ear = logging.root, _Ear(lines)
    level = root.level
    root.addHandler(ear)
    root.setLevel(min(level, ear.level))
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(ear)


class _Ear(logging.Handler):
    def __init__(self, lines: list[LogLine]) -> None:
        super().__init__(DEFAULTS.log_level)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(LogLine(record.levelname, self.format(record), record.name))
        except Exception:  # noqa: BLE001 - the arguments are the user's, and so is how they show
            self.handleError(record)
