"""Which run goes to which child, and when."""

import asyncio
from collections import deque
from collections.abc import Iterator

from consumer.core.outcome import Interrupted
from consumer.worker.member import Member
from consumer.worker.run import Run

_BALANCE_AFTER = 0.005
"""Seconds that a child may idle while a run waits behind another. Shorter would move runs that are about to start."""


class Dispatch:
    """A free child first, then a place behind a run; a run that must be alone waits until nothing else is there."""

    def __init__(self, members: list[Member], processes: int, look_ahead: int = 1) -> None:
        self._members = members
        self._look_ahead = look_ahead
        self._processes = processes
        self._ready: deque[Run] = deque()
        self._alone: deque[Run] = deque()
        self._solo: Run | None = None
        self._balancing = False

    def add(self, run: Run) -> None:
        (self._alone if run.work.alone else self._ready).append(run)
        self.go()

    def back(self, unstarted: list[Run]) -> None:
        """Their child is gone: they were here before all others, and nobody needs to know."""
        for run in reversed(unstarted):
            (self._alone if run.work.alone else self._ready).appendleft(run)
            if run is self._solo:
                self._solo = None

    def over(self, run: Run) -> None:
        if run is self._solo:
            self._solo = None

    def forget(self, run: Run) -> bool:
        """True where the run was still here, and so will never start."""
        for queue in (self._ready, self._alone):
            if run in queue:
                queue.remove(run)
                return True
        return False

    def withdraw(self) -> None:
        """Give back everything that has not started."""
        unstarted = [run for member in self._members for run in member.steal()]
        unstarted += [*self._ready, *self._alone]
        self._ready.clear()
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
            while self._ready and (place := self._idle() or self._behind_others()):
                place.send(self._ready.popleft())

    def idles(self) -> None:
        """A child has nothing to do: look soon whether something waits at another."""
        if not self._balancing and any(self._crowded()):
            self._balancing = True
            asyncio.get_running_loop().call_later(_BALANCE_AFTER, self._balance)

    def _start_alone(self) -> None:
        """Nothing else is sent meanwhile, so its turn comes, however busy the pool is."""
        member = self._idle()
        if member is not None and not any(each.queue for each in self._members):
            self._solo = self._alone.popleft()
            member.send(self._solo)

    def _idle(self) -> Member | None:
        """Not more busy ones than processes, though the successor of a child that is to leave is there already."""
        free, busy = None, 0
        for member in self._members:
            if member.queue:
                busy += 1
            elif member.ready and not member.leaving and not member.retiring:
                free = member
        return free if busy < self._processes else None

    def _behind_others(self) -> Member | None:
        """Where the fewest wait, and not more than may look ahead."""
        least, shortest = self._look_ahead + 1, None
        for member in self._members:
            if 0 < len(member.queue) < least and not (member.leaving or member.retiring or member.stolen_from):
                least, shortest = len(member.queue), member
        return shortest

    def _crowded(self) -> Iterator[Member]:
        return (member for member in self._members if len(member.queue) > 1)

    def _balance(self) -> None:
        """No run waits behind a long one while a child idles."""
        self._balancing = False
        if self._idle() is not None:
            for member in self._crowded():
                stolen = member.steal()
                if stolen:
                    self.back(stolen)
                    self.go()
                    break
