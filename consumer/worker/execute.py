"""Runs one job in a child: check the payload, call the handler under its clock, check the result."""

import json
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from consumer.worker import failure
from consumer.worker.failure import Refused
from consumer.worker.handler import JobContext, JobTimeout
from consumer.worker.loading import Kind
from consumer.worker.payload import checked, encoded
from consumer.worker.timer import RunTimer
from consumer.worker.wire import USAGE, Frame, Type, head

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
        payload = checked(kind, body, order["payload"], self._limits.depth)
        context = JobContext(order["kind"], order["key"], order["attempt"], order["deadline"], self._timer.expires)
        return encoded(kind.call(payload, context), self._limits.result)
