"""An exception as plain data: bounded, printable, and without payload values that we know of."""

import os
import traceback
from collections.abc import Iterator
from itertools import dropwhile
from json import dumps
from time import time
from typing import Any

from consumer.worker import advice
from consumer.worker.handler import DependencyDown, Reject, Retry, type_name

TEXT_LIMIT = 2_000
TRACEBACK_LIMIT = 8_000
_OURS = os.path.dirname(__file__)  # noqa: PTH120 - pathlib is not needed in children
_TYPES_LIMIT = 32
_NAME_LIMIT = 200
_CHAIN_LIMIT = 5
_FRAMES_LIMIT = 40
_FIELDS_LIMIT = 10


class Refused(Exception):
    """The payload or the result can't be accepted. `cause` is the type of the error that said so."""

    def __init__(self, code: str, detail: str, cause: type[BaseException] | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.cause = cause or Refused


def describe(error: BaseException, timed_out: str | None) -> dict[str, Any]:
    """What the parent is told. `timed_out` is the text where the execution timeout ended the run."""
    try:
        return _described(error, timed_out)
    except MemoryError:
        raise
    except BaseException as broken:  # noqa: BLE001 - attributes of errors are the user's code
        text = "(the job's error can't be told: reading it raised this)"
        return _plain("attempts_exhausted", type(broken), text, traceback_of(broken))


def _described(error: BaseException, timed_out: str | None) -> dict[str, Any]:
    if isinstance(error, Refused):
        return _plain(error.code, error.cause, text_of(error), "") | {"retryable": False}
    told = traceback_of(error)
    if timed_out is not None:
        return _plain("execution_timeout", type(error), timed_out, told)
    if isinstance(error, Reject):
        return _plain("rejected", type(error), text_of(error), told) | {"retryable": False}
    fields = _plain("attempts_exhausted", type(error), text_of(error), told)
    now = time()
    if isinstance(error, Retry):
        return fields | {"retryable": True, "after": advice.seconds(error.after, now)}
    if isinstance(error, DependencyDown):
        name = printable(str(error.name), _NAME_LIMIT)
        return fields | {"dependency": name, "after": advice.seconds(error.after, now)}
    return fields | advice.of(error, now)._asdict()


def _plain(code: str, error: type[BaseException], message: str, told: str) -> dict[str, Any]:
    types = [type_name(base)[:_NAME_LIMIT] for base in error.__mro__[:-1]]
    return {
        "code": code,
        "type": printable(types[0].removeprefix("builtins."), _NAME_LIMIT),
        "message": message,
        "traceback": told,
        "types": types[:_TYPES_LIMIT],
    }


def text_of(error: BaseException) -> str:
    """An error's own words. Pydantic quotes the input in them, so of its errors only place and rule are told."""
    try:
        return printable(validation_text(error) if is_validation_error(error) else str(error), TEXT_LIMIT)
    except MemoryError:
        raise
    except BaseException as broken:  # noqa: BLE001 - __str__ is the user's code
        return f"(its text can't be had: {type(broken).__name__})"


def is_validation_error(error: BaseException) -> bool:
    """By name: the answer needs no import."""
    return type_name(type(error)) == "pydantic_core._pydantic_core.ValidationError"


def validation_text(error: Any) -> str:
    """Path and rule of each wrong field, never its value."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    fields = [
        f"{'.'.join(str(step)[:60] for step in detail['loc']) or '(payload)'}: {detail['type']}"
        for detail in details[:_FIELDS_LIMIT]
    ]
    more = len(details) - len(fields)
    return "; ".join(fields) + (f"; and {more} more" if more else "")


def traceback_of(error: BaseException) -> str:
    """Like Python's own, except that the errors' texts are ours; the newest part is kept."""
    try:
        parts = [
            "".join(traceback.format_list(_frames(link)))
            + f"{type_name(type(link)).removeprefix('builtins.')}: {text_of(link)}\n"
            for link in _chain(error)
        ]
    except MemoryError:
        raise
    except BaseException as broken:  # noqa: BLE001 - reading source lines may fail in many ways, causes are user's code
        return f"(no traceback: {type(broken).__name__})"
    return printable("\nwhich led to\n\n".join(reversed(parts)), -TRACEBACK_LIMIT)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Without our own at the beginning, which tell nobody anything."""
    frames = traceback.extract_tb(error.__traceback__, limit=-_FRAMES_LIMIT)
    return [*dropwhile(lambda frame: os.path.dirname(frame.filename) == _OURS, frames)]  # noqa: PTH120


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(_CHAIN_LIMIT):
        if link is None:
            return
        yield link
        link = link.__cause__ if link.__suppress_context__ else link.__context__


def printable(text: str, limit: int) -> str:
    """At most |limit| characters, from the end where it is negative, that any database and terminal takes."""
    kept = text[:limit] if limit > 0 else text[limit:]
    return kept.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def encode(fields: dict[str, Any]) -> bytes:
    return dumps(fields).encode()
