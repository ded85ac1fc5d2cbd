"""How long to wait before another child, or another zygote, is started. Pure."""

_FIRST = 0.1
_LONGEST = 5.0
_UNHEALTHY_AFTER = 3


class Respawn:
    """At once for the first; ever later while starts fail, or while those that started die without a finished job.

    The latter up to `patience` seconds: for how long nobody works, where it is a few bad jobs that end them all.
    """

    def __init__(self, patience: float = _LONGEST) -> None:
        self._patience = patience
        self._in_vain = 0
        self._failed_starts = 0

    @property
    def healthy(self) -> bool:
        return self._failed_starts < _UNHEALTHY_AFTER

    @property
    def delay(self) -> float:
        return max(min(self._patience, _growing(self._in_vain)), min(_LONGEST, _growing(self._failed_starts)))

    def started(self) -> None:
        self._failed_starts = 0

    def worked(self) -> None:
        self._in_vain = 0

    def died_in_vain(self) -> None:
        self._in_vain += 1

    def failed_to_start(self) -> None:
        self._failed_starts += 1


def _growing(failures: int) -> float:
    return 0.0 if failures <= 1 else _FIRST * 2.0 ** min(failures - 2, 16)
