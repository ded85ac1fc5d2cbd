"""Tells when a job sends a signal to its own process: if that ends it, it looks like a kill from outside.

Set up in the zygote, before the job modules are imported, so that they can import these functions as they like.
"""

import functools
import os
import signal
from collections.abc import Callable
from types import ModuleType
from typing import Any


def _is_our_group(number: int) -> bool:
    return number in (0, os.getpgrp())


def _is_us(number: int) -> bool:
    """As `kill` reads it: a process, or with a minus a group; -1 is everybody."""
    return number in (os.getpid(), -1) or _is_our_group(-number)


def _always(_number: int) -> bool:
    return True


_FUNCTIONS: tuple[tuple[ModuleType, str, Callable[[int], bool]], ...] = (
    (os, "kill", _is_us),
    (os, "killpg", _is_our_group),
    (signal, "raise_signal", _always),
    (signal, "pthread_kill", _always),
)


def nobody(_is_about_to: bool) -> None:
    pass


_tell: Callable[[bool], None] = nobody


def tell(told: Callable[[bool], None]) -> None:
    """Call `told` with True before each such signal, and with False after one that we survived."""
    global _tell  # noqa: PLW0603 - it is of the process, as the functions are
    _tell = told


def watch() -> None:
    """Wrap them, once a zygote."""
    for module, name, hits_us in _FUNCTIONS:
        setattr(module, name, _wrapped(getattr(module, name), hits_us))


def _wrapped(function: Callable[..., Any], hits_us: Callable[[int], bool]) -> Callable[..., Any]:
    @functools.wraps(function)
    def noted(number: int, *rest: Any) -> Any:
        if not hits_us(number):
            return function(number, *rest)
        _tell(True)
        try:
            return function(number, *rest)
        finally:
            _tell(False)

    return noted
