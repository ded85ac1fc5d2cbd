"""What a pool is told when it is started, and whom it tells what happens."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """Times in seconds, sizes in bytes. `path` is searched for `modules` before anything else.

    `processes` is how many cpu children run `def` handlers, `io_processes` how many io children run `async def` ones,
    0 for none; `io_concurrency` is how many jobs an io child runs at a time, and `io_stall` how long one of them may
    hold up its event loop.
    `look_ahead` is how many jobs may wait at a cpu child behind the running one. `memory_limit` is of a child's data,
    0 for its share of `container_memory` (0: that has no limit), -1 for none. `cpu_limit` is of one job in a cpu child,
    `open_files` of a child, both 0 for none. A child is replaced after `recycle_jobs` jobs, at the age of `recycle_age`
    or when it holds more than `recycle_memory` after a job, 0 for never; and after a job that left threads or processes
    behind, unless `keep_leftovers`. `log_limit` is of what one job may print and log, `log_level` its least level.
    """

    modules: tuple[str, ...]
    processes: int = 2
    io_processes: int = 1
    io_concurrency: int = 50
    io_stall: float = 5.0
    look_ahead: int = 1
    path: tuple[str, ...] = ()
    memory_limit: int = 0
    container_memory: int = 0
    cpu_limit: float = 0.0
    open_files: int = 0
    result_limit: int = 16 * 1024 * 1024
    max_depth: int = 100
    kill_grace: float = 1.0
    recycle_jobs: int = 0
    recycle_age: float = 0.0
    recycle_memory: int = 0
    keep_leftovers: bool = False
    log_limit: int = 64 * 1024
    log_level: int = logging.INFO
    start_timeout: float = 60.0


class Observer(Protocol):
    def child_exited(self, sort: str, reason: str) -> None:
        """`sort` is cpu or io; `reason` crash, out_of_memory, timeout, cancel, stopped, damaged, recycle or drain."""
        ...

    def said(self, kind: str, key: str, stream: str, text: str, *, attempt: int = 0, level: int = logging.INFO) -> None:
        """A line of a job. `stream`: stdout, stderr, output (what it wrote beside Python), or the name of a logger.

        `kind` and `key` are empty where it was no job, or where nobody knows which: a module at its import, say.
        """
        ...

    def progressed(self, kind: str, key: str, fraction: float, note: str) -> None:
        """How far a running job is, 0 to 1; at most a few times a second."""
        ...


@dataclass(frozen=True, slots=True)
class Figures:
    """The pool at one moment, children by sort. `oldest_start` is the start of its longest running job in epoch ms."""

    children: Mapping[str, int]
    busy: Mapping[str, int]
    running: int
    slots: int
    waiting: int
    oldest_start: int | None
