"""The dead-letter breaker: after a bad deploy everything fails, and burying all of it helps nobody; pure."""

from collections import deque
from dataclasses import dataclass

from consumer.core.disposition import Complete, DeadLetter, Defer, Disposition
from schemas.codes import Code

OPEN = "dead_letter_breaker"
OUR_DOING = frozenset(
    {
        Code.UNKNOWN_KIND,
        Code.REJECTED,
        Code.ATTEMPTS_EXHAUSTED,
        Code.EXECUTION_TIMEOUT,
        Code.WORKER_CRASHED,
        Code.OUT_OF_MEMORY,
        Code.RESULT_TOO_LARGE,
        Code.RESULT_NOT_JSON,
    }
)
"""What a bad deploy does. Malformed input says something about a producer, a deadline that is over about a backlog."""
BUCKETS = 60
"""Parts of the window that are forgotten one by one: so many numbers, however many jobs."""


@dataclass(frozen=True, slots=True)
class BurialRules:
    """Opens where, of the jobs that ended within the last `window` ms, `least` or more were dead-lettered and they
    make up `ratio` of all; 0: never. `first` and `longest`: how long it stays open, in ms."""

    ratio: float = 0.9
    least: int = 100
    window: int = 300_000
    first: int = 30_000
    longest: int = 600_000


class DeadLetterBreaker:
    """While it is open, and the intake with it, what would be dead-lettered is put off, uncharged. When it closes half,
    the first job that ends decides: a success closes it, a dead letter is let through and opens it again for twice as
    long, so that one job in the head of a queue can't hold up all others for ever.
    """

    def __init__(self, rules: BurialRules) -> None:
        self._rules = rules
        self._buckets: deque[list[int]] = deque(maxlen=BUCKETS)
        self._until = 0
        self._rounds = 0

    def weigh(self, disposition: Disposition, now: int) -> Disposition:
        """The disposition that is to be carried out instead; the same one while there is no reason to stop."""
        match disposition:
            case Complete():
                self._succeeded(now)
            case DeadLetter(fault) if self._rules.ratio and fault.code in OUR_DOING:
                return self._died(disposition, now)
        return disposition

    def open_for(self, now: int) -> int:
        """Milliseconds until the next try; 0 while it isn't open."""
        return max(self._until - now, 0)

    @property
    def is_closed(self) -> bool:
        return not self._rounds

    def _succeeded(self, now: int) -> None:
        if self._rounds and now >= self._until:
            self._rounds = 0
        self._note(now, dead=False)

    def _died(self, letter: DeadLetter, now: int) -> Disposition:
        if now < self._until:
            return Defer(self._until, OPEN)
        if self._rounds:
            self._open(now)
            return letter
        self._note(now, dead=True)
        ended, dead = (sum(bucket[n] for bucket in self._buckets) for n in (1, 2))
        if dead < self._rules.least or dead < self._rules.ratio * ended:
            return letter
        self._open(now)
        return Defer(self._until, OPEN)

    def _open(self, now: int) -> None:
        self._until = now + min(self._rules.longest, self._rules.first << min(self._rounds, 20))
        self._rounds += 1
        self._buckets.clear()

    def _note(self, now: int, *, dead: bool) -> None:
        number = now * BUCKETS // self._rules.window
        if not self._buckets or self._buckets[-1][0] != number:
            self._buckets.append([number, 0, 0])
            while self._buckets[0][0] <= number - BUCKETS:
                self._buckets.popleft()
        self._buckets[-1][1] += 1
        self._buckets[-1][2] += dead
