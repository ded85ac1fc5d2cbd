"""What sessions that end soon after their start have in common, and how long to wait before the next; pure."""

from consumer.core.policy import RetryPolicy
from consumer.core.ports import Chance
from consumer.core.retry import wait_seconds

LASTING = 5.0
"""Seconds after which a session was a good one, however it ends."""
ALIKE = 3
"""Brief sessions in a row that end the same way, from which on that is no accident."""
LOST = RetryPolicy(base=0.2, cap=3.0)
"""A connection that was lost: its broker is back in use within 5 s of its return."""
REFUSED = RetryPolicy(base=0.2, cap=30.0)
"""What a person has to mend. Each session charges the messages in hand with one of the deliveries that they have."""


class Streak:
    """`refusals` are the reasons that don't go away by trying again."""

    def __init__(self, refusals: frozenset[str], chance: Chance) -> None:
        self._refusals = refusals
        self._chance = chance
        self._brief = 0
        self._alike = 0
        self._last = ("", "")

    def ended(self, reason: str, detail: str, lived: float) -> None:
        if lived >= LASTING:
            self._brief = self._alike = 0
        self._brief += 1
        self._alike = self._alike + 1 if self._last == (reason, detail) else 1
        self._last = (reason, detail)

    def wait(self) -> float:
        """Seconds until the next session; more after each brief one."""
        policy = REFUSED if self._last[0] in self._refusals else LOST
        return wait_seconds(policy, self._brief, None, self._chance)

    @property
    def becomes_a_pattern(self) -> bool:
        """True once in a streak: when it is time to say it loudly."""
        return self._alike == ALIKE

    @property
    def is_a_pattern(self) -> bool:
        return self._alike >= ALIKE
