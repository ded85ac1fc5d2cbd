"""When the jobs of one kind wait, all of them, because what they need is down."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cooldown:
    """`until` in epoch milliseconds."""

    kind: str
    until: int
    why: str
