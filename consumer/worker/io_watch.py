"""Looks at an io child while it has runs: does its loop move, who holds it up, and whose time is over."""

import asyncio
from collections.abc import Collection
from typing import Protocol

from consumer.worker.blame import only_one
from consumer.worker.procfs import is_dead, is_stopped
from consumer.worker.run import Run

EVERY = 0.05
"""Seconds between two looks; an idle loop moves more often than that."""
_HELD_UP = 2
_STILL = 4
"""After how many looks without a step we take back what has not begun, and after how many we doubt the loop itself."""


class Mark(Protocol):
    @property
    def steps(self) -> int: ...
    @property
    def who(self) -> int: ...
    @property
    def in_threads(self) -> frozenset[int]: ...
    @property
    def at_itself(self) -> frozenset[int]: ...


class Watched(Protocol):
    stolen_from: bool

    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> Collection[Run]: ...
    def hold(self) -> None:
        """Take back what has not begun, and send nothing for now."""
        ...

    def release(self) -> None:
        """The loop moves: it may get more."""
        ...

    def cancel(self, run: Run) -> None:
        """Its time is over."""
        ...

    def retire(self) -> None: ...
    def give_up(self, guilty: frozenset[int], *, stopped: bool) -> None:
        """End the child, and charge that to these runs. `stopped`: it was, perhaps by somebody else."""
        ...


class IoWatch:
    """While a run holds up the loop, the clocks of all others stand still: their time is not theirs."""

    def __init__(self, member: Watched, mark: Mark, grace: float, stall: float) -> None:
        self._member = member
        self._mark = mark
        self._grace = grace
        self._stall = stall
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._steps = -1
        self._still = 0

    @property
    def moves(self) -> bool:
        """Whether the loop did, when we looked last."""
        return not self._still

    def start(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(EVERY, self._ring)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self._timer = None
        if self._member.running or self._member.stolen_from:
            self.look(self._loop.time())
            self.start()

    def look(self, now: float) -> None:
        self._count_still_looks()
        holder = self._mark.who if self._still else 0
        for run in [*self._member.running]:
            if holder and run.id != holder:
                run.started += EVERY
                run.cancelled_at += EVERY
        if self._hurry(now) or self._still * EVERY >= self._stall:
            stopped = self._still >= _STILL and self._is_stopped_or_dead()
            self._member.give_up(self._mark.at_itself if stopped else self._guilty(), stopped=stopped)

    def _is_stopped_or_dead(self) -> bool:
        """It was not any run that kept the loop; the death we may have no word of yet."""
        return is_stopped(self._member.pid) or is_dead(self._member.pid)

    def _count_still_looks(self) -> None:
        """Looks and not seconds: where the daemon itself was stopped, they don't count."""
        steps = self._mark.steps
        self._still = self._still + 1 if steps == self._steps else 0
        self._steps = steps
        if self._still == _HELD_UP:
            self._member.hold()
        elif not self._still:
            self._member.release()

    def _hurry(self, now: float) -> bool:
        """Cancel what is over its time; return whether something didn't mind, and must be over by the next look."""
        late = False
        for run in [*self._member.running]:
            over = now - run.ends_at
            if over >= 0 and not run.overran:
                self._member.cancel(run)
            if over >= self._grace / 2:
                self._member.retire()
            if over >= self._grace - EVERY:
                late = True
        return late

    def _guilty(self) -> frozenset[int]:
        """Where the loop doesn't move, one that is late couldn't mind, unless it is the one that holds the loop up."""
        if self._still < _STILL:
            return frozenset(run.id for run in self._member.running if run.overran)
        return frozenset({self._mark.who} - {0}) or only_one(self._mark.in_threads)
