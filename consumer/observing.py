"""Where what happens in the pool goes: metrics, the log, and the rows of running jobs."""

import logging

import structlog

from consumer.metrics import Metrics
from consumer.progress import Progress

_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO)


class PoolObserver:
    def __init__(self, metrics: Metrics, progress: Progress) -> None:
        self._metrics = metrics
        self._progress = progress
        self._log = structlog.get_logger("consumer.jobs")

    def child_exited(self, sort: str, reason: str) -> None:
        self._metrics.child_exited(sort, reason)

    def said(self, kind: str, key: str, stream: str, text: str, *, attempt: int = 0, level: int = logging.INFO) -> None:
        """The text is its own field, so that no job can write a log line of ours."""
        about = {"kind": kind, "key": key, "attempt": attempt} if kind else {}
        self._log.log(_known(level), "job said", **about, stream=stream, text=text)

    def progressed(self, kind: str, key: str, fraction: float, note: str) -> None:
        self._progress.progressed(kind, key, fraction, note)


def _known(level: int) -> int:
    """People have levels of their own."""
    return next((known for known in _LEVELS if known <= level), logging.DEBUG)
