"""Which jobs may have killed the zygote. Pure, but for what it remembers."""

from collections import OrderedDict

_MOST = 1_000


class Suspects:
    """A job can end the zygote, which ends every child, and nobody sees who did it: so all that ran are suspects.

    A suspect runs alone the next time. If the zygote ends again, it was that one.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __contains__(self, job: tuple[str, str]) -> bool:
        return job in self._keys

    def add(self, kind: str, key: str) -> None:
        self._keys[kind, key] = None
        if len(self._keys) > _MOST:
            self._keys.popitem(last=False)

    def clear(self, kind: str, key: str) -> None:
        if self._keys:
            self._keys.pop((kind, key), None)
