"""Runs one job in a child: check the payload, call the handler under its clock, check the result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import loads  # functions, here and below: a job may put others in the modules' place
from time import monotonic, process_time, time
from typing import Any

from consumer.worker import failure, process
from consumer.worker.context import JobContext
from consumer.worker.failure import Refused
from consumer.worker.handler import JobTimeout
from consumer.worker.loading import Kind
from consumer.worker.payload import checked, encoded
from consumer.worker.report import report, usage
from consumer.worker.scope import Backstage
from consumer.worker.timer import RunTimer
from consumer.worker.wire import Frame

_NOTABLE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a child: bytes of data, open files, CPU seconds of a job, all 0 for none; of a result and of what a job says.

    `keep`: threads and processes that a job leaves behind may stay.
    """

    memory: int
    files: int
    cpu: float
    keep: bool
    result: int
    depth: int
    log: int


class Executor:
    def __init__(self, kinds: Mapping[str, Kind], limits: Limits, timer: RunTimer, backstage: Backstage) -> None:
        self._kinds = kinds
        self._limits = limits
        self._timer = timer
        self._backstage = backstage
        self._peak = process.peak()

    @property
    def interrupted(self) -> bool:
        """Whether time was over in the last run, and an exception of ours ended it, wherever it was."""
        return self._timer.verdict is not None

    def execute(self, frame: Frame, cancelled: Callable[[], bool]) -> tuple[bytes, bytes]:
        """The report of the run, to be sent as two pieces: frames without the body of the last one, and that.

        Raises MemoryError, and nothing else.
        """
        order = loads(frame.meta)
        started_at, cpu = time(), process_time()
        scope = self._backstage.enter(frame.job_id, order, monotonic() + order["timeout"], cancelled)
        failed: dict[str, Any] | None = None
        result = b""
        try:
            try:
                self._timer.start(order["timeout"])
                result = self._run(order, frame.body, scope.context)
            finally:
                self._timer.stop()
            if self._timer.verdict is not None:
                raise JobTimeout("the handler went on after its timeout")  # noqa: TRY301
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are outcomes like others
            failed = failure.describe(error, self._timer.verdict)
        scope.close()
        cost = usage(started_at, process_time() - cpu)
        self._forget_peak(cost[-1])
        start, body = report(frame.job_id, failed, result, cost)
        return scope.preface(succeeded=failed is None, length=len(body)) + start, body

    def _forget_peak(self, peak: int) -> None:
        """So that the next job isn't taken for as large as this one. Where it didn't rise, it needn't be told."""
        if peak > self._peak + _NOTABLE:
            process.forget_peak()
            self._peak = process.peak()

    def _run(self, order: dict[str, Any], body: bytes, context: JobContext) -> bytes:
        kind = self._kinds.get(order["kind"])
        if kind is None:
            raise Refused("unknown_kind", f"no handler is declared for kind {order['kind']!r}")
        payload = checked(kind, body, order["payload"], self._limits.depth)
        return encoded(kind.call(payload, context), self._limits.result)
