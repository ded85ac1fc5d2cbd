"""What a handler gives us, as JSON text."""

import json
from typing import Any


def _dumped(value: Any) -> Any:
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_dumped)


def json_text(value: object) -> bytes:
    """Raises TypeError, ValueError (UnicodeEncodeError for half of a surrogate pair) or RecursionError."""
    return _ENCODER.encode(value).encode("utf-8")
