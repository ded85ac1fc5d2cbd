"""Holds back a run that would not fit into the memory beside the others. Pure."""

from collections import deque
from collections.abc import Iterable

from consumer.worker.needs import Needs
from consumer.worker.run import Run

_PASSES = 16
"""How many may go before the first in the line, which doesn't fit yet, until all wait for it."""


class Gate:
    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self._held: Run | None = None
        self._passed = 0

    def next(self, ready: deque[Run], here: Iterable[Run], elsewhere: Iterable[Iterable[Run]]) -> Run | None:
        """Take the one of `ready` that may go to a child with the runs `here`, while others have those `elsewhere`."""
        if not self._needs.scarce:
            return ready.popleft()
        taken = [self._most(runs) for runs in elsewhere]
        before = self._most(here)
        first = ready[0]
        for run in ready:
            if self._needs.fit(taken, max(before, self._needs.of(run.work.job.kind))):
                ready.remove(run)
                self._count(first, run)
                return run
            if first is self._held and self._passed >= _PASSES:
                break
        return None

    def _count(self, first: Run, chosen: Run) -> None:
        if chosen is first:
            self._held = None
        elif first is self._held:
            self._passed += 1
        else:
            self._held, self._passed = first, 1

    def _most(self, runs: Iterable[Run]) -> int:
        """Of one child: it runs them one after the other."""
        return max((self._needs.of(run.work.job.kind) for run in runs), default=0)
