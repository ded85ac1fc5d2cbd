"""The demo's kinds: jobs that behave, and jobs that don't."""

import os
import signal
import time

from pydantic import BaseModel, PositiveInt

from consumer import JobContext, job


class Flaky(BaseModel):
    fails: PositiveInt


class Nothing(BaseModel):
    pass


@job("demo.flaky", max_attempts=5, backoff=0.5)
def flaky(payload: Flaky, context: JobContext) -> dict[str, int]:
    """Fail `fails` times, then succeed."""
    if context.attempt <= payload.fails:
        raise ConnectionError(f"the partner did not answer (attempt {context.attempt})")
    return {"attempts": context.attempt}


@job("demo.always_fails", max_attempts=3, backoff=0.5)
def always_fails(_: Nothing) -> None:
    raise RuntimeError("this one never works")


@job("demo.kills_its_child", max_attempts=2, backoff=0.5)
def kills_its_child(_: Nothing) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@job("demo.overruns", timeout=1.0, max_attempts=2, backoff=0.5)
def overruns(_: Nothing) -> None:
    time.sleep(3600)
