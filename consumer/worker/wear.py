"""When a child has served long enough. Pure."""

import math
from dataclasses import dataclass

_SPREAD = 0.2
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True)
class Wear:
    """Of one child, 0 for no limit: how many jobs it takes, to what age in seconds, up to what memory in bytes."""

    jobs: int = 0
    age: float = 0.0
    memory: int = 0

    def of(self, number: int) -> "Wear":
        """The limits of the nth child: up to a fifth less, so that those which start together don't go together.

        Multiples of the golden ratio are spread as evenly as chance would, for any number of children.
        """
        share = 1 - _SPREAD * (number * _GOLDEN % 1)
        return Wear(math.ceil(self.jobs * share), self.age * share, self.memory)
