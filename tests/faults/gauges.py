"""What both soaks of the pool measure: how soon it goes on after a kill, how the parent fares, and what is left."""

import asyncio
import os
import time
from collections import Counter
from dataclasses import dataclass, field

from consumer.core.outcome import Outcome
from tests.support.leash import descendants
from tests.support.pools import own_descriptors, state
from tests.support.processes import resident_bytes
from tests.support.waiting import elapse, until

LAG_EVERY = 0.005
MOST_GROWTH = 32 * 1024 * 1024
LONGEST_BREAK, LONGEST_LAG = 1.0, 0.05
"""Seconds, for 99 of 100; of fewer kills, one may take longer on a busy machine: half of them are looked at."""


@dataclass
class Gauges:
    """`wrong` is for people, a line each."""

    jobs: int
    kills: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    exits: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    _seconds: float = 0.0
    _latest: float = 0.0
    _unanswered: list[float] = field(default_factory=list)
    _back: list[float] = field(default_factory=list)
    _pauses: list[float] = field(default_factory=list)
    _lags: list[float] = field(default_factory=list)
    _memory: int = 0
    _grown: int = 0

    def begin(self) -> None:
        self._descriptors = own_descriptors()
        self._began = self._latest = time.monotonic()

    def killed(self) -> None:
        self.kills += 1
        self._unanswered.append(time.monotonic())

    def came(self, outcome: Outcome) -> None:
        now = time.monotonic()
        self.outcomes[type(outcome).__name__] += 1
        self._pauses.append(now - self._latest)
        self._back += [now - kill for kill in self._unanswered]
        self._unanswered.clear()
        self._latest, self._seconds = now, now - self._began
        if self.outcomes.total() == self.jobs // 4:
            self._memory = resident_bytes(os.getpid())

    async def measure_lag(self, over: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        while not over.is_set():
            due = loop.time() + LAG_EVERY
            await elapse(LAG_EVERY)
            self._lags.append(max(0.0, loop.time() - due))

    def look_around(self) -> None:
        """Once all is over, while the pool is still there, and full."""
        self._grown = resident_bytes(os.getpid()) - self._memory
        for is_so, what in (
            (self._grown > MOST_GROWTH, "the parent's memory grows"),
            (
                _quantile(self._back, 0.99 if self.kills >= 100 else 0.5) > LONGEST_BREAK,
                "nothing came back for too long after a kill",
            ),
            (_quantile(self._lags, 0.99) > LONGEST_LAG, "the parent's loop lagged"),
            (own_descriptors() > self._descriptors, f"{own_descriptors() - self._descriptors} descriptors more"),
        ):
            if is_so:
                self.wrong.append(what)
        try:
            until(lambda: not any(state(pid) == "Z" for pid in descendants(os.getpid())), "no zombies", within=2)
        except TimeoutError as error:
            self.wrong.append(str(error))

    def __str__(self) -> str:
        lines = [
            f"{self.jobs} jobs in {self._seconds:.1f} s, {self.jobs / self._seconds:.0f}/s; {self.kills} kills",
            f"outcomes: {dict(self.outcomes.most_common())}",
            f"children left by: {dict(self.exits.most_common())}",
            f"after a kill the next outcome came within {_quantiles(self._back)}",
            f"pause between two outcomes: {_quantiles(self._pauses)}",
            f"lag of the parent's loop: {_quantiles(self._lags)}",
            f"memory of the parent grew by {self._grown / 2**20:.1f} MiB after the first quarter",
            *self.wrong[:20],
            f"{len(self.wrong)} wrong",
        ]
        return "\n".join(lines)


def _quantiles(values: list[float]) -> str:
    parts = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
    return ", ".join(f"{name} {1000 * _quantile(values, part):.1f} ms" for name, part in parts)


def _quantile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else 0.0
