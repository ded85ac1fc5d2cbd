"""How a child reports a run that is over."""

from time import time
from typing import Any

from consumer.worker import failure, process
from consumer.worker.wire import USAGE, Type, head


def usage(started_at: float, cpu_seconds: float) -> tuple[int, int, float, int]:
    """What a run cost until now, in the order of the wire."""
    return (
        int(started_at * 1000),
        int(time() * 1000),
        cpu_seconds,
        process.peak(),
    )


def report(
    job_id: int, failed: dict[str, Any] | None, result: bytes, cost: tuple[int, int, float, int]
) -> tuple[bytes, bytes]:
    """Head and body of the frame."""
    if failed is not None:
        return head(Type.FAILED, job_id, failure.encode(failed | {"usage": cost})), b""
    return head(Type.SUCCEEDED, job_id, USAGE.pack(*cost), len(result)), result
