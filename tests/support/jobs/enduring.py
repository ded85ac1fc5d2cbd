"""Jobs for the chaos run: how each ends is known beforehand, whatever happens around it."""

import time
from typing import Any

from consumer import JobContext, Reject, job

MANY = 1000
"""Attempts, so that children that are killed under a job never use them up."""


@job("steady", timeout=30, max_attempts=MANY, backoff=0.2, backoff_cap=0.5)
def steady(payload: float, context: JobContext) -> dict[str, Any]:
    """Take `payload` seconds."""
    time.sleep(payload)
    return {"key": context.key, "attempt": context.attempt}


@job("wobbly", timeout=30, max_attempts=MANY, backoff=0.2, backoff_cap=0.5)
def wobbly(payload: int, context: JobContext) -> dict[str, Any]:
    """Fail at the first `payload` attempts."""
    if context.attempt <= payload:
        raise ConnectionError(f"attempt {context.attempt} fails")
    return {"key": context.key, "attempt": context.attempt}


@job("asking", timeout=30, max_attempts=MANY, backoff=0.2, backoff_cap=0.5)
def asking(payload: int, context: JobContext) -> dict[str, Any]:
    """Ask for `payload` steady jobs, each later than the one before."""
    for number in range(payload):
        context.send("steady", 0.0, delay=number / 10)
    return {"key": context.key, "attempt": context.attempt}


@job("hopeless", timeout=30, max_attempts=3, backoff=0.2, backoff_cap=0.5)
def hopeless(payload: Any) -> None:
    raise ConnectionError("it never works")


@job("refused", timeout=30)
def refused(payload: Any) -> None:
    raise Reject("there is no such account")
