"""What a pool is told when it is started, and whom it tells what happens."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Times in seconds, sizes in bytes. `path` is searched for `modules` before anything else.

    `look_ahead` is how many jobs may wait at a child behind the running one. `memory_limit` is of address space, 0
    for none; `recycle_jobs` is how many jobs a child runs before it is
    replaced, 0 for any number.
    """

    modules: tuple[str, ...]
    processes: int = 2
    look_ahead: int = 1
    path: tuple[str, ...] = ()
    memory_limit: int = 0
    result_limit: int = 16 * 1024 * 1024
    max_depth: int = 100
    kill_grace: float = 1.0
    recycle_jobs: int = 0
    start_timeout: float = 60.0


class Observer(Protocol):
    def child_exited(self, reason: str) -> None:
        """`reason` is one of crash, out_of_memory, timeout, recycle, drain."""
        ...


@dataclass(frozen=True, slots=True)
class Figures:
    """The pool at one moment. `oldest_start` is the start of its longest running job in epoch ms."""

    children: int
    busy: int
    running: int
    slots: int
    waiting: int
    oldest_start: int | None
