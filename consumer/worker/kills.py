"""Kills of io children by somebody outside, or by one of their jobs in a way that nobody sees. Pure."""

from collections.abc import Iterable

from consumer.worker.blame import NOBODY
from consumer.worker.run import Run

AT_ONCE = 3
ENOUGH = AT_ONCE + 15
_CONTROL = 3.0


class Kills:
    """A job that kills meets each of its kills; somebody outside sooner or later meets a child where it is not.

    So a suspect is tried alone. After each kill that meets it, but the first three, the others have the children to
    themselves for three times as long as it lived, and a kill that meets no suspect clears it. Somebody outside,
    however often he kills, has each time one chance in four to meet the trial and not the pause: fifteen times in a
    row, less than one in a billion. `pause` is that time in seconds, until somebody let it pass.
    """

    def __init__(self) -> None:
        self.pause = 0.0
        self._suspect = 0
        self._times = 0

    def meet(self, begun: Iterable[Run], now: float) -> frozenset[int]:
        """One of a child where these had begun. Return to whom it is charged."""
        suspect = next((run for run in begun if run.suspect), None)
        if suspect is None:
            self._times = 0
            return NOBODY
        if suspect.id != self._suspect:
            self._suspect, self._times = suspect.id, 0
        self._times += 1
        if self._times > AT_ONCE:
            self.pause = _CONTROL * (now - suspect.started)
        return frozenset({suspect.id}) if self._times >= ENOUGH else NOBODY
