"""Which run goes to which child, and when."""

from collections import deque

from consumer.core.outcome import Interrupted
from consumer.worker.catalogue import Sort
from consumer.worker.lines import CpuLine, IoLine
from consumer.worker.run import Run


class Dispatch:
    """Each sort of run stands in its own line; a run that must be alone waits until nothing else is there."""

    def __init__(self, cpu: CpuLine, io: IoLine) -> None:
        self._cpu = cpu
        self._lines: dict[Sort, CpuLine | IoLine] = {Sort.CPU: cpu, Sort.IO: io}
        self._alone: deque[Run] = deque()
        self._solo: Run | None = None

    def add(self, run: Run) -> None:
        if run.work.alone:
            self._alone.append(run)
        else:
            self._lines[run.sort].add(run)
        self.go()

    def back(self, unstarted: list[Run]) -> None:
        """Their child is gone: they were here before all others, and nobody needs to know."""
        for run in reversed(unstarted):
            if run.work.alone:
                self._alone.appendleft(run)
            else:
                self._lines[run.sort].back(run)
            if run is self._solo:
                self._solo = None

    def over(self, run: Run) -> None:
        if run is self._solo:
            self._solo = None

    def forget(self, run: Run) -> bool:
        """True where the run was still here, and so will never start."""
        if run in self._alone:
            self._alone.remove(run)
            return True
        return self._lines[run.sort].forget(run)

    def withdraw(self) -> None:
        """Give back everything that has not started."""
        lines = self._lines.values()
        unstarted = [run for line in lines for member in line.members for run in member.steal()]
        unstarted += [run for line in lines for run in line.clear()]
        unstarted += self._alone
        self._alone.clear()
        for run in unstarted:
            self.over(run)
            run.settle(Interrupted("withdrawn"))

    def go(self) -> None:
        if self._solo is not None:
            return
        if self._alone:
            self._start_alone()
        else:
            for line in self._lines.values():
                line.go()

    def idles(self) -> None:
        """A child has nothing to do."""
        self._cpu.balance(self._balanced)

    def _balanced(self, stolen: list[Run]) -> None:
        self.back(stolen)
        self.go()

    def _start_alone(self) -> None:
        """Nothing else is sent meanwhile, so its turn comes, however busy the pool is."""
        member = self._lines[self._alone[0].sort].idle()
        busy = any(each.queue for line in self._lines.values() for each in line.members)
        if member is not None and not busy:
            self._solo = self._alone.popleft()
            member.send(self._solo)
