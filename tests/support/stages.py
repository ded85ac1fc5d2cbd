"""A stage for a context without a child."""

from pathlib import Path

from consumer.worker.context import JobContext


class Stage:
    """Remembers what a handler said; `told` to stop, it says so."""

    def __init__(self, folder: Path = Path()) -> None:
        self.marks: list[tuple[float, str]] = []
        self.told = False
        self._folder = folder

    def progressed(self, fraction: float, note: str) -> None:
        self.marks.append((fraction, note))

    def cancelled(self) -> bool:
        return self.told

    def folder(self) -> Path:
        return self._folder


def context(kind: str = "kind", key: str = "key", stage: Stage | None = None) -> JobContext:
    return JobContext(kind, key, 1, None, 0.0, stage or Stage())
