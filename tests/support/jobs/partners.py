"""Jobs of which something outside decides whether they can be done: a file that is there, or not."""

import time
from pathlib import Path
from typing import Any

from consumer import DependencyDown, JobContext, job


@job("partner", timeout=10, max_attempts=2)
def partner(payload: str, context: JobContext) -> int:
    """The partner is down while the file is there. Each call leaves a line in the file's log."""
    down = Path(payload)
    with down.with_suffix(".log").open("a") as log:
        log.write(f"{time.time_ns() // 1_000_000} {context.key}\n")
    if down.exists():
        raise DependencyDown("partner-api", after=2)
    return context.attempt


@job("deployed_badly", timeout=10)
def deployed_badly(payload: str) -> str:
    """Fails as code does that expects another payload, while the file is there."""
    if Path(payload).exists():
        raise KeyError("customer")
    return "done"


@job("fails", timeout=10, max_attempts=20, backoff=0.1, backoff_cap=0.2)
def fails(payload: Any) -> None:
    raise ConnectionError("again and again")
