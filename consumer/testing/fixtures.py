"""A pytest plugin: `pytest_plugins = ["consumer.testing.fixtures"]` in the topmost conftest.py."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from consumer.testing.daemon import MemoryDaemon


@pytest.fixture
def memory_daemon() -> Iterator[Callable[..., MemoryDaemon]]:
    """Make daemons, as `memory_daemon(handler, modules=["shop"])`; they are closed after the test."""
    with ExitStack() as daemons:
        yield lambda *handlers, **how: daemons.enter_context(MemoryDaemon(*handlers, **how))
