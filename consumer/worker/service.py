"""How long a child has served, and whether that is enough."""

from collections.abc import Callable

from consumer.worker.wear import Wear


class Service:
    """Of one child. `now` is on any clock in seconds, as long as it is one clock."""

    def __init__(self, wear: Wear, now: float) -> None:
        self._wear = wear
        self._born = now
        self._jobs = 0

    def had_its_jobs(self) -> bool:
        """Count one that was sent; True where it was the last that it may have."""
        self._jobs += 1
        return self._jobs == self._wear.jobs

    def is_enough(self, now: float, peak: int, held: Callable[[], int]) -> bool:
        """After a job. What it holds now is looked up only where it ever was too much."""
        wear = self._wear
        if wear.age and now - self._born >= wear.age:
            return True
        return bool(wear.memory) and peak > wear.memory and held() > wear.memory
