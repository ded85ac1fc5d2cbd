"""How long to wait before another child, or another zygote, is started. Pure."""

_FIRST = 0.1
_LONGEST = 5.0
_UNHEALTHY_AFTER = 3


class Respawn:
    """At once for the first; ever later while children die without having finished a job."""

    def __init__(self) -> None:
        self._in_vain = 0
        self._failed_starts = 0

    @property
    def healthy(self) -> bool:
        return self._failed_starts < _UNHEALTHY_AFTER

    @property
    def delay(self) -> float:
        failures = max(self._in_vain, self._failed_starts)
        return 0.0 if failures <= 1 else min(_LONGEST, _FIRST * 2.0 ** min(failures - 2, 16))

    def started(self) -> None:
        self._failed_starts = 0

    def worked(self) -> None:
        self._in_vain = 0

    def died_in_vain(self) -> None:
        self._in_vain += 1

    def failed_to_start(self) -> None:
        self._failed_starts += 1
