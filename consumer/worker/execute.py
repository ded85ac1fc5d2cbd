"""Runs one job in a child: check the payload, call the handler under its clock, check the result."""

import json
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from consumer.core.pointer import resolve
from consumer.core.strict_json import StrictJsonError, loads
from consumer.worker import failure
from consumer.worker.failure import Refused
from consumer.worker.handler import JobContext, JobTimeout
from consumer.worker.loading import Kind
from consumer.worker.timer import RunTimer
from consumer.worker.wire import USAGE, Frame, Type, head

_BOM = b"\xef\xbb\xbf"
_KIBIBYTE = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a child: bytes of address space (0: none) and of a result, depth of a payload."""

    memory: int
    result: int
    depth: int


class Executor:
    def __init__(self, kinds: Mapping[str, Kind], limits: Limits, timer: RunTimer) -> None:
        self._kinds = kinds
        self._limits = limits
        self._timer = timer

    def execute(self, frame: Frame) -> tuple[bytes, bytes]:
        """Head and body of the frame that reports the run. Raises MemoryError, and nothing else."""
        order = json.loads(frame.meta)
        started_at, cpu = time.time(), time.process_time()
        failed: dict[str, Any] | None = None
        result = b""
        try:
            try:
                self._timer.start(order["timeout"])
                result = self._run(order, frame.body)
            finally:
                self._timer.stop()
            if self._timer.fired:
                raise JobTimeout("the handler went on after its timeout")  # noqa: TRY301
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are outcomes like others
            failed = failure.describe(error, self._timer.verdict)
        usage = (
            int(started_at * 1000),
            int(time.time() * 1000),
            time.process_time() - cpu,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE,
        )
        if failed is not None:
            return head(Type.FAILED, frame.job_id, failure.encode(failed | {"usage": usage})), b""
        return head(Type.SUCCEEDED, frame.job_id, USAGE.pack(*usage), len(result)), result

    def _run(self, order: dict[str, Any], body: bytes) -> bytes:
        kind = self._kinds.get(order["kind"])
        if kind is None:
            raise Refused("unknown_kind", f"no handler is declared for kind {order['kind']!r}")
        payload = _payload(kind, body, order["payload"], self._limits.depth)
        context = JobContext(order["kind"], order["key"], order["attempt"], order["deadline"], self._timer.expires)
        return _encoded(kind.call(payload, context), self._limits.result)


def _payload(kind: Kind, body: bytes, pointer: str, max_depth: int) -> Any:
    """The strict parser decides whether it is JSON, pydantic whether it is what the handler wants.

    Pydantic reads the text itself, not the parsed value: its rules for JSON are the ones that the exported
    schema describes (a strict model takes dates and the like from text in JSON only).
    """
    try:
        document = loads(body, max_depth=max_depth)
        text = body.removeprefix(_BOM)
        if pointer:
            text = json.dumps(resolve(document, pointer), ensure_ascii=False).encode()
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


def _dumped(value: Any) -> Any:
    if hasattr(type(value), "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_dumped)


def _encoded(value: object, limit: int) -> bytes:
    try:
        text = _ENCODER.encode(value).encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("result_not_json", "the result holds half of a surrogate pair", UnicodeEncodeError) from None
    except (TypeError, ValueError, RecursionError) as error:
        detail = f"the result isn't JSON: {failure.text_of(error)}"
        raise Refused("result_not_json", detail, type(error)) from None
    if len(text) > limit:
        raise Refused("result_too_large", f"the result has {len(text)} bytes, the limit is {limit}")
    return text
