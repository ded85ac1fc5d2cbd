"""Cuts what is written into lines, as long as they may be. Both sides use it."""

import codecs

LINE_LIMIT = 2_000
"""Characters. What is longer becomes several lines."""
LINE_COST = 64
"""What a line counts beside its own bytes: a million empty ones are much, too."""


class LineCutter:
    """A line that is written over (`\\r`, as progress bars do) counts as it looks in the end."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = ""

    def feed(self, data: bytes) -> list[str]:
        *complete, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        if len(self._rest) > LINE_LIMIT:
            complete.append(self._rest)
            self._rest = ""
        return [piece for line in complete for piece in _pieces(line)]

    def finish(self) -> list[str]:
        """What has no end yet gets one."""
        if not self._rest:
            return []
        rest, self._rest = self._rest, ""
        return _pieces(rest)


def _pieces(line: str) -> list[str]:
    """Blank lines say nothing."""
    line = line.rstrip().rpartition("\r")[2]
    return [line[start : start + LINE_LIMIT] for start in range(0, len(line), LINE_LIMIT)]
