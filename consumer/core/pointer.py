"""JSON pointers (RFC 6901): where a payload lies in a body. Standard library only: children use it too."""

import re
from functools import lru_cache
from typing import Any

_INDEX = re.compile("0|[1-9][0-9]*")


@lru_cache(maxsize=64)
def parse(pointer: str) -> tuple[str, ...]:
    """The names on the way; () is the whole document."""
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise ValueError("a JSON pointer is empty or begins with a slash")
    if re.search("~(?![01])", pointer):
        raise ValueError("a tilde in a JSON pointer is written ~0, a slash ~1")
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in pointer[1:].split("/"))


def resolve(document: Any, pointer: str) -> Any:
    """What the pointer points at; LookupError where there is nothing."""
    for name in parse(pointer):
        if isinstance(document, dict):
            document = document[name]
        elif isinstance(document, list) and _INDEX.fullmatch(name) and len(name) <= len(str(len(document))):
            document = document[int(name)]
        else:
            raise LookupError("nothing there")
    return document
