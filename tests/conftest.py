"""Servers that the tests share, the runner of `async def` tests, and what several workers at once need."""

import asyncio
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import Postgres
from tests.support.rabbit import Rabbit
from tests.support.workers import TestByTest, die_with_parents

PATIENCE = 60
"""Seconds that one coroutine test may take."""


def pytest_configure() -> None:
    die_with_parents()


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> TestByTest:
    return TestByTest(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), PATIENCE))
    return True


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test has the settings that it makes, and none of the shell that pytest was called from."""
    for name in [name for name in os.environ if name.startswith("CONSUMER_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def rabbit() -> Iterator[Rabbit]:
    """A RabbitMQ node. A test that stops or kills it starts a `Rabbit` of its own instead."""
    with Rabbit() as node:
        yield node


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, shared likewise."""
    with Postgres() as server:
        yield server


@pytest.fixture
def amqp_url(rabbit: Rabbit) -> Iterator[str]:
    """A fresh virtual host."""
    url = rabbit.vhost()
    yield url
    rabbit.delete_vhost(url)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """A fresh database."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A database file that doesn't exist yet."""
    return f"sqlite:///{tmp_path}/consumer.sqlite3"
