"""Which kinds cool down because what they depend on is down; pure, time and chance are passed in.

closed → (a dependency is down, or too many runs fail) → cooling until a time → probing → closed, or cooling longer
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from consumer.core.burials import OUR_DOING
from consumer.core.cooldown import Cooldown
from consumer.core.outcome import Crashed, Failed, Outcome, Succeeded, TimedOut
from consumer.core.ports import Chance

PROBE_GAP = 1_000
"""Milliseconds between the first two probes; each gap is twice the one before, up to the length of the cooldown.
No cooldown is shorter, and none is made longer by less."""
OVER = 0
"""The `until` of a cooldown that ended."""


@dataclass(frozen=True, slots=True)
class CoolingRules:
    """`first` and `longest` cooldown in milliseconds, where nobody says how long the dependency will be away.

    A kind of whose last `window` runs at least `ratio` failed cools down, too; 0: never. `ratios` are those of kinds
    that differ.
    """

    first: int = 5_000
    longest: int = 300_000
    window: int = 20
    ratio: float = 0.0
    ratios: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Kind:
    """`until` is 0 while closed. `rounds` counts the cooldowns in a row. `shared`: the store knew of it, too."""

    until: int = OVER
    length: int = 0
    rounds: int = 0
    next_probe: int = 0
    gap: int = PROBE_GAP
    shared: bool = False
    runs: deque[bool] = field(default_factory=deque)

    def begin(self, until: int, now: int) -> None:
        """Or go on for longer, which is no round of its own."""
        self.rounds += now >= self.until
        self.until, self.length = until, until - now
        self.next_probe, self.gap = until, PROBE_GAP
        self.runs.clear()

    def close(self) -> None:
        self.until, self.rounds, self.shared = OVER, 0, False
        self.runs.clear()


class Cooling:
    def __init__(self, rules: CoolingRules, chance: Chance) -> None:
        self._rules = rules
        self._chance = chance
        self._kinds: defaultdict[str, _Kind] = defaultdict(_Kind)

    def due(self, kind: str, now: int) -> int | None:
        """When a job of a kind that cools down should come back; None where the kind doesn't.

        Spread behind the end of the cooldown, so that not all of them come to a dependency that has just got up.
        """
        state = self._kinds.get(kind)
        return None if state is None or now >= state.until else self._spread(state, state.until)

    def enter(self, kind: str, now: int) -> int | None:
        """As `due`, for a job that is about to start: after the cooldown only few may, until one of them succeeds."""
        state = self._kinds.get(kind)
        if state is None or not state.until:
            return None
        if now < state.next_probe:
            return self._spread(state, max(state.until, state.next_probe))
        state.next_probe, state.gap = now + state.gap, min(2 * state.gap, max(state.length, PROBE_GAP))
        return None

    def heard(self, kind: str, outcome: Outcome, now: int) -> Cooldown | None:
        """Take note of a run; return the cooldown that begins, or is over, because of it."""
        if isinstance(outcome, Failed) and outcome.fault.code not in OUR_DOING:
            return None
        state = self._kinds[kind]
        if isinstance(outcome, Failed) and outcome.dependency is not None:
            return self._down(kind, state, outcome, now)
        if state.until:
            return None if now < state.until else self._probed(kind, state, outcome, now)
        ratio = self._rules.ratios.get(kind, self._rules.ratio)
        return self._count(kind, state, ratio, outcome, now) if ratio else None

    def learn(self, shared: Iterable[Cooldown], now: int) -> None:
        """Take over from the store what others saw cooling, and what they saw up again."""
        known = {cooldown.kind: cooldown.until for cooldown in shared}
        for kind, until in known.items():
            state = self._kinds[kind]
            if until > max(state.until, now):
                state.begin(until, now)
            elif not (state.until or state.shared):
                state.until = until
            state.shared = True
        for kind, state in self._kinds.items():
            if state.shared and kind not in known:
                state.close()

    def states(self) -> dict[str, bool]:
        """Each kind that was seen, and whether it cools down, or is probed, now."""
        return {kind: bool(state.until) for kind, state in self._kinds.items()}

    def _down(self, kind: str, state: _Kind, outcome: Failed, now: int) -> Cooldown | None:
        """Runs that began before the cooldown tell nothing new, unless somebody says that it will take longer."""
        if outcome.after is None and now < state.until:
            return None
        wait = self._backoff(state) if outcome.after is None else max(round(outcome.after * 1000), PROBE_GAP)
        if now < state.until and now + wait < state.until + PROBE_GAP:
            return None
        return _cool(kind, state, now + wait, now, f"{outcome.dependency} is down")

    def _probed(self, kind: str, state: _Kind, outcome: Outcome, now: int) -> Cooldown | None:
        if isinstance(outcome, Succeeded):
            state.close()
            return Cooldown(kind, OVER, "a probe succeeded")
        if isinstance(outcome, Failed | TimedOut | Crashed):
            return _cool(kind, state, now + self._backoff(state), now, "a probe failed")
        return None

    def _count(self, kind: str, state: _Kind, ratio: float, outcome: Outcome, now: int) -> Cooldown | None:
        runs, window = state.runs, self._rules.window
        runs.append(isinstance(outcome, Failed | TimedOut | Crashed))
        if len(runs) > window:
            runs.popleft()
        if len(runs) < window or sum(runs) < ratio * window:
            return None
        why = f"{sum(runs)} of its last {window} runs failed"
        return _cool(kind, state, now + self._backoff(state), now, why)

    def _backoff(self, state: _Kind) -> int:
        return min(self._rules.longest, self._rules.first << min(state.rounds, 20))

    def _spread(self, state: _Kind, moment: int) -> int:
        return moment + round(self._chance() * max(PROBE_GAP, state.length / 2))


def _cool(kind: str, state: _Kind, until: int, now: int, why: str) -> Cooldown:
    state.begin(until, now)
    return Cooldown(kind, until, why)
