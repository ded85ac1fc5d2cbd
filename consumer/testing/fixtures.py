"""A pytest plugin: `pytest_plugins = ["consumer.testing.fixtures"]` in the topmost conftest.py."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from consumer.testing.daemon import MemoryDaemon
from consumer.testing.outcome import Told


@pytest.fixture
def memory_daemon() -> Iterator[Callable[..., MemoryDaemon]]:
    """Make daemons, as `memory_daemon(handler, modules=["shop"])`; they are closed after the test."""
    with ExitStack() as daemons:
        yield lambda *handlers, **how: daemons.enter_context(MemoryDaemon(*handlers, **how))


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """What a comparison with a status or a code that fails tells: why it is another one."""
    stories = [side.story for side in (left, right) if isinstance(side, Told)]
    return [f"{left!r} {op} {right!r}", *stories] if stories else None
