"""Ends and reaps what descends from the zygote: the children of the pool, and what escaped from them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from consumer.worker import process

_KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class End:
    """Of a child: its wait status, and what it used in all its life."""

    pid: int
    status: int
    cpu: float
    memory: int


class Reaper:
    def __init__(self) -> None:
        """What the job modules started while they were imported is theirs, and stays."""
        process.adopt_orphans()
        self._children: set[int] = set()
        self._residents = {*process.children()}

    def add(self, pid: int) -> None:
        self._children.add(pid)

    def spare(self, pid: int) -> None:
        """One that the zygote started for itself."""
        self._residents.add(pid)

    def kill(self, pid: int, number: int) -> None:
        if pid in self._children:
            process.kill_group(pid, number)

    def reap(self) -> Iterator[End]:
        """A dead child keeps its pid until it is reaped: its group can be killed before without hitting others."""
        while dead := _dead():
            if dead in self._children:
                process.kill_group(dead)
            pid, status, usage = os.wait4(dead, 0)
            self._residents.discard(pid)
            if pid in self._children:
                self._children.discard(pid)
                yield End(pid, status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _KIBIBYTE)
        self._kill_strays()

    def end(self) -> None:
        """No child survives, and nothing that escaped from one."""
        for pid in self._children:
            process.kill_group(pid)
        doomed = self._children | self._kill_strays()
        while doomed:
            for pid in doomed:
                os.waitpid(pid, 0)
            doomed = self._kill_strays()

    def _kill_strays(self) -> set[int]:
        """Who left the group of a child, as daemons do, comes to us when that ends, and its own children later."""
        strays = {*process.children()} - self._children - self._residents
        return {pid for pid in strays if process.kill_group(pid)}


def _dead() -> int | None:
    try:
        dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return dead.si_pid if dead else None
