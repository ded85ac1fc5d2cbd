"""Time that passes when it is told to."""

from dataclasses import dataclass


@dataclass
class VirtualClock:
    """`now` in epoch milliseconds."""

    now: int

    def __call__(self) -> int:
        return self.now
