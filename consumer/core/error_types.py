"""Which types of exceptions have a label of their own: handlers raise what they like, and every label is a series."""

OTHER = "_OTHER"
MOST_TYPES = 50
MOST_PAIRS = 300
"""Of a kind and a type. With 50 types in each of 20 kinds a pod would have more series than it may."""


class ErrorTypes:
    """Those that came first, for as long as the process lives."""

    def __init__(self) -> None:
        self._types: set[str] = set()
        self._pairs: set[tuple[str, str]] = set()

    def label(self, kind: str, name: str) -> str:
        if (kind, name) in self._pairs:
            return name
        types = self._types | {name}
        if len(types) > MOST_TYPES or len(self._pairs) == MOST_PAIRS:
            return OTHER
        self._types = types
        self._pairs.add((kind, name))
        return name
