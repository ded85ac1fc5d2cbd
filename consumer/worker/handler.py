"""What a module of jobs imports: the decorator that declares a handler, its context, and what it may raise."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from consumer.core.policy import Jitter, KindPolicy, RetryPolicy

Function = TypeVar("Function", bound=Callable[..., object])


class Retry(Exception):
    """The job can't be done now. `after`: the least wait in seconds before the next attempt."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class Reject(Exception):
    """The job can never be done: no further attempt, straight to the dead-letter queue."""


class JobTimeout(BaseException):
    """Raised inside a handler when its execution timeout is over: clean up now, what comes next is a signal.

    No `Exception`, so that a handler's own `except Exception: try again` lets it pass.
    """


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a handler may know about its run. `deadline` is epoch ms; `expires` is on `time.monotonic()`'s clock."""

    kind: str
    key: str
    attempt: int
    deadline: int | None
    expires: float

    def time_left(self) -> float:
        """Seconds until the execution timeout or the deadline, whichever is first; never below 0."""
        left = self.expires - time.monotonic()
        if self.deadline is not None:
            left = min(left, self.deadline / 1000 - time.time())
        return max(0.0, left)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function, and how its kind is run and retried."""

    function: Callable[..., object]
    policy: KindPolicy

    @property
    def place(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"


declared: list[Handler] = []
"""Every handler of this process, in the order of declaration.

A list, and no search through the modules' names: a handler in a submodule is found too, and the second of two
functions of one name doesn't hide the first.
"""


def job(
    kind: str,
    *,
    timeout: float = 300.0,
    max_attempts: int = 5,
    backoff: float = 1.0,
    backoff_cap: float = 600.0,
    jitter: Literal["equal", "full", "none"] = "equal",
    retry_on: Iterable[type[BaseException] | str] = (),
    no_retry_on: Iterable[type[BaseException] | str] = (),
) -> Callable[[Function], Function]:
    """Declare the handler of a kind. Times in seconds; errors as classes or as their (dotted) names."""
    _check(kind, timeout=timeout, max_attempts=max_attempts, backoff_cap=backoff_cap)
    retry = RetryPolicy(
        max_attempts=max_attempts,
        base=backoff,
        cap=backoff_cap,
        jitter=Jitter(jitter),
        retry_on=_names(retry_on),
        no_retry_on=_names(no_retry_on),
    )

    def declare(function: Function) -> Function:
        declared.append(Handler(function, KindPolicy(kind, float(timeout), retry)))
        return function

    return declare


def type_name(error: type[Any]) -> str:
    """The dotted name of a class: how types cross to the parent and are written in settings."""
    return f"{error.__module__}.{error.__qualname__}"


def _names(errors: Iterable[type[BaseException] | str]) -> frozenset[str]:
    return frozenset(error if isinstance(error, str) else type_name(error) for error in errors)


def _check(kind: str, **numbers: float) -> None:
    if not isinstance(kind, str) or not kind:
        raise TypeError('a handler is declared as @job("kind"), with the name of its kind in brackets')
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name} of kind {kind!r} is {number}; it must be above 0")
