"""Where the next run goes: one line before the cpu children, one before the io children."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from consumer.worker.gate import Gate
from consumer.worker.kills import Kills
from consumer.worker.member import Member
from consumer.worker.run import Run

_BALANCE_AFTER = 0.005
"""Seconds that a child may idle while a run waits behind another. Shorter would move runs that are about to start."""


class CpuLine:
    """A free child first, then a place behind a run."""

    def __init__(self, members: list[Member], processes: int, gate: Gate, look_ahead: int = 1) -> None:
        self.members = members
        self._gate = gate
        self._look_ahead = look_ahead
        self._processes = processes
        self._ready: deque[Run] = deque()
        self._balancing = False

    def add(self, run: Run) -> None:
        self._ready.append(run)

    def back(self, run: Run) -> None:
        self._ready.appendleft(run)

    def forget(self, run: Run) -> bool:
        return _removed(run, self._ready)

    def clear(self) -> list[Run]:
        return _emptied(self._ready)

    def go(self) -> None:
        while self._ready and (place := self.idle() or self._behind_others()):
            run = self._gate.next(self._ready, place.queue, (each.queue for each in self.members if each is not place))
            if run is None:
                return
            place.send(run)

    def idle(self) -> Member | None:
        """Not more busy ones than processes, though the successor of a child that is to leave is there already."""
        free, busy = None, 0
        for member in self.members:
            if member.queue:
                busy += 1
            elif member.ready and not member.leaving and not member.retiring:
                free = member
        return free if busy < self._processes else None

    def balance(self, back: Callable[[list[Run]], None]) -> None:
        """A child has nothing to do: look soon whether something waits at another. `back` takes what does."""
        if not self._balancing and any(self._crowded()):
            self._balancing = True
            asyncio.get_running_loop().call_later(_BALANCE_AFTER, self._balance, back)

    def _behind_others(self) -> Member | None:
        """Where the fewest wait, and not more than may look ahead."""
        least, shortest = self._look_ahead + 1, None
        for member in self.members:
            if 0 < len(member.queue) < least and not (member.leaving or member.retiring or member.stolen_from):
                least, shortest = len(member.queue), member
        return shortest

    def _crowded(self) -> Iterator[Member]:
        return (member for member in self.members if len(member.queue) > 1)

    def _balance(self, back: Callable[[list[Run]], None]) -> None:
        """No run waits behind a long one while a child idles."""
        self._balancing = False
        if self.idle() is not None:
            for member in self._crowded():
                stolen = member.steal()
                if stolen:
                    back(stolen)
                    break


class IoLine:
    """The child with the fewest runs first. A suspect has a child for itself, so that its next end tells who did it;
    one at a time, so that the others have the other children.
    """

    def __init__(self, members: list[Member], concurrency: int, kills: Kills) -> None:
        self.members = members
        self._concurrency = concurrency
        self._kills = kills
        self._pausing = False
        self._ready: deque[Run] = deque()
        self._suspects: deque[Run] = deque()

    def add(self, run: Run) -> None:
        self._ready.append(run)

    def back(self, run: Run) -> None:
        (self._suspects if run.suspect else self._ready).appendleft(run)

    def forget(self, run: Run) -> bool:
        return _removed(run, self._ready, self._suspects)

    def clear(self) -> list[Run]:
        return _emptied(self._suspects, self._ready)

    def go(self) -> None:
        if self._kills.pause and not self._pausing and self._able():
            self._pausing = True
            asyncio.get_running_loop().call_later(self._kills.pause, self._end_pause)
        if self._is_trial_due():
            self._try_next()
        while self._ready and (place := self._roomiest()):
            place.send(self._ready.popleft())

    def idle(self) -> Member | None:
        return next((member for member in self._able() if not member.queue), None)

    def _end_pause(self) -> None:
        self._pausing, self._kills.pause = False, 0.0
        self.go()

    def _is_trial_due(self) -> bool:
        on_trial = any(member.queue and member.queue[0].suspect for member in self.members)
        return bool(self._suspects) and not on_trial and not self._kills.pause

    def _try_next(self) -> None:
        """In a child that had no job before, which could have left something there; else in the next one."""
        child = self.idle()
        if child is None:
            return
        if child.fresh:
            child.send(self._suspects.popleft())
        else:
            child.retire()

    def _able(self) -> list[Member]:
        """Those that had no job yet first."""
        able = (
            member
            for member in self.members
            if member.ready and not (member.leaving or member.retiring or member.stolen_from)
        )
        return sorted(able, key=lambda member: not member.fresh)

    def _roomiest(self) -> Member | None:
        """While suspects wait for a child, one gets nothing else, so that their turn comes."""
        able = self._able()
        if self._is_trial_due():
            able = able[1:]
        open_ones = [
            member
            for member in able
            if len(member.queue) < self._concurrency and not (member.queue and member.queue[0].suspect)
        ]
        return min(open_ones, key=lambda member: len(member.queue), default=None)


def _removed(run: Run, *queues: deque[Run]) -> bool:
    for queue in queues:
        if run in queue:
            queue.remove(run)
            return True
    return False


def _emptied(*queues: deque[Run]) -> list[Run]:
    runs = [run for queue in queues for run in queue]
    for queue in queues:
        queue.clear()
    return runs
