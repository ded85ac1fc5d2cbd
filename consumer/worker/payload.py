"""What goes into a handler and what comes out of it: the check of the payload, and the result as JSON text."""

from json import dumps
from typing import Any

from consumer.core.pointer import resolve
from consumer.core.strict_json import StrictJsonError, loads
from consumer.worker import failure
from consumer.worker.failure import Refused
from consumer.worker.json_text import json_text
from consumer.worker.loading import Kind

_BOM = b"\xef\xbb\xbf"


def checked(kind: Kind, body: bytes, pointer: str, max_depth: int) -> Any:
    """The strict parser decides whether it is JSON, pydantic whether it is what the handler wants.

    Pydantic reads the text itself, not the parsed value: its rules for JSON are the ones that the exported
    schema describes (a strict model takes dates and the like from text in JSON only).
    """
    try:
        document = loads(body, max_depth=max_depth)
        text = body.removeprefix(_BOM)
        if pointer:
            text = dumps(resolve(document, pointer), ensure_ascii=False).encode()
    except StrictJsonError as error:
        raise Refused(error.code, error.detail, StrictJsonError) from None
    except LookupError:
        raise Refused("invalid_payload", f"there is nothing at {pointer} in the body", LookupError) from None
    try:
        return kind.validate(text)
    except Exception as error:
        if not failure.is_validation_error(error):
            raise
        raise Refused("invalid_payload", failure.validation_text(error), type(error)) from None


def encoded(value: object, limit: int) -> bytes:
    try:
        text = json_text(value)
    except UnicodeEncodeError:
        raise Refused("result_not_json", "the result holds half of a surrogate pair", UnicodeEncodeError) from None
    except (TypeError, ValueError, RecursionError) as error:
        detail = f"the result isn't JSON: {failure.text_of(error)}"
        raise Refused("result_not_json", detail, type(error)) from None
    if len(text) > limit:
        raise Refused("result_too_large", f"the result has {len(text)} bytes, the limit is {limit}")
    return text
