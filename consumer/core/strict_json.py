"""JSON as RFC 8259 writes it and nothing else: what two parsers could read differently is refused.

Children import this module before any job module, so it needs nothing but the standard library and knows its
refusal codes as plain strings.

The C scanner of the standard library does the work. What it is lenient about is searched for in the bytes
first, with searches that cost next to nothing where they find nothing; only a suspect pays for slow hooks.
"""

import json
import re
from math import isinf
from typing import Any, NoReturn

INVALID_JSON = "invalid_json"
TOO_DEEP = "too_deep"
NUMBER_OUT_OF_RANGE = "number_out_of_range"

MAX_DEPTH = 100
MAX_DIGITS = 1000

BOM = b"\xef\xbb\xbf"
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SQUARE = bytes.maketrans(b"{}", b"[]")
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_RUN = b"0" * 200
"""A number with fewer digits, and at most two in its exponent, is neither infinite nor too long."""


class StrictJsonError(ValueError):
    """`detail` names a rule and a place, never a value."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


def loads(data: bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """Parse one JSON text. A value that is no array or object has depth 0, `[]` has depth 1."""
    body = data[3:] if data.startswith(BOM) else data
    if body.count(b"[") + body.count(b"{") > max_depth and _is_too_deep(body, max_depth):
        raise StrictJsonError(TOO_DEEP, f"arrays and objects are nested deeper than {max_depth} levels")
    if b"\\u" in body and _has_lone_surrogate(body):
        raise StrictJsonError(INVALID_JSON, "an escape is half of a surrogate pair, which is no character")
    decoder = _CHECKING_NUMBERS if _has_unusual_number(body) else _PLAIN
    try:
        return decoder.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise StrictJsonError(INVALID_JSON, f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise StrictJsonError(INVALID_JSON, f"{_rule(error)} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise StrictJsonError(TOO_DEEP, "nested deeper than the stack has room for") from None


def canonical(value: Any) -> bytes:
    """The same bytes for the same value, whatever the order of names, white space and escapes were.

    1 and 1.0 stay apart, because handlers can tell them apart.
    """
    return _CANONICAL.encode(value).encode("utf-8")


def _is_too_deep(body: bytes, max_depth: int) -> bool:
    """Take the strings out, then peel off the innermost pairs of brackets, once a level."""
    outside = body.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]
    brackets = b"".join(outside).translate(_SQUARE, _NOT_BRACKETS)
    for _ in range(max_depth):
        peeled = brackets.replace(b"[]", b"")
        if len(peeled) == len(brackets):
            break
        brackets = peeled
    return b"[]" in brackets or brackets.count(b"[") > max_depth


def _has_lone_surrogate(body: bytes) -> bool:
    escapes = body.replace(rb"\\", b"  ")
    if not _ESCAPED_SURROGATE.search(escapes):
        return False
    return _ESCAPED_SURROGATE.search(_SURROGATE_PAIR.sub(b"", escapes)) is not None


def _has_unusual_number(body: bytes) -> bool:
    """Whether a number may overflow or be too long: now and then a false alarm, never a miss."""
    shape = body.translate(_DIGITS_AS_ZERO, b"+")
    return b"e000" in shape or _LONG_RUN in shape


def _rule(error: json.JSONDecodeError) -> str:
    return error.msg.removesuffix(" at").replace("Expecting", "expecting", 1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise StrictJsonError(INVALID_JSON, "an object has the same name twice")
    return members


def _refuse_constant(_: str) -> NoReturn:
    raise StrictJsonError(INVALID_JSON, "NaN and Infinity are not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise StrictJsonError(INVALID_JSON, "a number is too large for a float")
    return value


def _bounded(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise StrictJsonError(NUMBER_OUT_OF_RANGE, f"an integer has more than {MAX_DIGITS} digits")
    return int(text)


_PLAIN = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
_CHECKING_NUMBERS = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_bounded
)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
