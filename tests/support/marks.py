"""What the jobs of tests/support/jobs/observed.py wrote: one mark an execution, counted without the daemon's help."""

from dataclasses import dataclass
from pathlib import Path

from tests.support.waiting import eventually


@dataclass(frozen=True, slots=True)
class Mark:
    """`at`: when the execution started, in epoch milliseconds; `pid`: of its child."""

    key: str
    attempt: int
    pid: int
    at: int


class Marks:
    """The file that jobs write to, and the gate that some of them wait for."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "marks"
        self._gate = folder / "gate"
        self.payload = {"marks": str(self._path), "gate": str(self._gate)}

    def open_gate(self) -> None:
        self._gate.touch()

    @property
    def all(self) -> list[Mark]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [
            Mark(key, int(attempt), int(pid), int(at)) for key, attempt, pid, at in (line.split(" ") for line in lines)
        ]

    async def of(self, key: str, count: int = 1) -> list[Mark]:
        """Wait until a job has started `count` times."""

        async def so() -> bool:
            return len(self._of(key)) >= count

        await eventually(so, f"{count} executions of {key}")
        return self._of(key)

    async def more_than(self, count: int) -> None:
        """Wait until there are more executions than so many."""

        async def so() -> bool:
            return len(self.all) > count

        await eventually(so, f"more than {count} executions")

    def _of(self, key: str) -> list[Mark]:
        return [mark for mark in self.all if mark.key == key]
