"""What a module of jobs imports: the decorator that declares a handler, and what it may raise."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, TypeVar

from consumer.core.policy import Jitter, KindPolicy, RetryPolicy

Function = TypeVar("Function", bound=Callable[..., object])


class Retry(Exception):
    """The job can't be done now. `after`: the least wait before the next attempt, in seconds, or what a server's
    Retry-After header said (seconds or an HTTP date)."""

    after: float | str | None = None  # a subclass need not call our __init__

    def __init__(self, message: str, after: float | str | None = None) -> None:
        super().__init__(message)
        self.after = after


class DependencyDown(Exception):
    """What the jobs of this kind need is down: `name` says what, for people; `after` for how long, as in `Retry`.

    The kind cools down, in all replicas that share a database. This attempt isn't charged.
    """

    name: str = "a dependency"  # likewise
    after: float | str | None = None

    def __init__(self, name: str, after: float | str | None = None) -> None:
        super().__init__(f"{name} is down")
        self.name = str(name)
        self.after = after


class Reject(Exception):
    """The job can never be done: no further attempt, straight to the dead-letter queue."""


class JobTimeout(BaseException):
    """Raised inside a handler when its execution timeout is over: clean up now, what comes next is a signal.

    No `Exception`, so that a handler's own `except Exception: try again` lets it pass.
    """


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
    budget: float = 0.0,
    wait_timeout: float = 0.0,
    retry_on: Iterable[type[BaseException] | str] = (),
    no_retry_on: Iterable[type[BaseException] | str] = (),
) -> Callable[[Function], Function]:
    """Declare the handler of a kind. Times in seconds; errors as classes or as their (dotted) names.

    `budget`: for all attempts and the waits between them; `wait_timeout`: from submission to the first start; 0: any.
    """
    _check(kind, timeout=timeout, max_attempts=max_attempts, backoff=backoff, backoff_cap=backoff_cap)
    _check_limit(kind, "budget", budget)
    _check_limit(kind, "wait_timeout", wait_timeout)
    retry = RetryPolicy(
        max_attempts=max_attempts,
        base=backoff,
        cap=backoff_cap,
        jitter=Jitter(jitter),
        budget=float(budget),
        retry_on=_names(kind, "retry_on", retry_on),
        no_retry_on=_names(kind, "no_retry_on", no_retry_on),
    )

    def declare(function: Function) -> Function:
        declared.append(Handler(function, KindPolicy(kind, float(timeout), retry, float(wait_timeout))))
        return function

    return declare


def type_name(error: type[Any]) -> str:
    """The dotted name of a class: how types cross to the parent and are written in settings."""
    return f"{error.__module__}.{error.__qualname__}"


def _names(kind: str, name: str, errors: Iterable[type[BaseException] | str]) -> frozenset[str]:
    if isinstance(errors, str):
        raise ValueError(f"{name} of kind {kind!r} is one text; it must be a list of errors")  # noqa: TRY004 as its like
    return frozenset(error if isinstance(error, str) else type_name(error) for error in errors)


def _check(kind: str, **numbers: float) -> None:
    if not isinstance(kind, str) or not kind:
        raise TypeError('a handler is declared as @job("kind"), with the name of its kind in brackets')
    for name, number in numbers.items():
        if not 0 < number < inf:
            raise ValueError(f"{name} of kind {kind!r} is {number}; it must be above 0, and have an end")


def _check_limit(kind: str, name: str, seconds: float) -> None:
    if not 0 <= seconds < inf:
        raise ValueError(f"{name} of kind {kind!r} is {seconds}; it must be 0, for no limit, or above")
