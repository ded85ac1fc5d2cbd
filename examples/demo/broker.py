"""Finds a broker for the demo: yours, an installed one, one that it may install, or a container."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.leash import ROOT
from tests.support.rabbit import Rabbit
from tests.support.waiting import free_port, until

VARIABLE = "CONSUMER_BROKER__URL"
NOWHERE = (
    "no RabbitMQ to be found: set CONSUMER_BROKER__URL to one of yours, install rabbitmq-server, "
    "or start Docker, and run `make demo` again"
)


@contextmanager
def broker() -> Iterator[tuple[str, str]]:
    """Yield the URL of a broker and where it comes from; what was started for it is ended afterwards."""
    if url := os.environ.get(VARIABLE):
        yield url, f"your broker ({VARIABLE})"
    elif _can_have_an_installed_one():
        with Rabbit() as node:
            yield node.url, "a private RabbitMQ node"
    elif _docker_runs():
        with _container() as url:
            yield url, "a RabbitMQ container"
    else:
        raise LookupError(NOWHERE)


def _can_have_an_installed_one() -> bool:
    """Installed, or installed now: as root on Debian or Ubuntu."""
    return (
        subprocess.run(
            [ROOT / "requirements" / "system.sh", "rabbitmq"], stderr=subprocess.DEVNULL, check=False
        ).returncode
        == 0
    )


def _docker_runs() -> bool:
    docker = shutil.which("docker")
    return docker is not None and subprocess.run([docker, "info"], capture_output=True, check=False).returncode == 0


@contextmanager
def _container() -> Iterator[str]:
    port = free_port()
    command = ["docker", "run", "--rm", "--detach", "--publish", f"127.0.0.1:{port}:5672", "rabbitmq:4"]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        answers = ["docker", "exec", name, "rabbitmq-diagnostics", "--quiet", "check_port_connectivity"]
        until(
            lambda: subprocess.run(answers, capture_output=True, check=False).returncode == 0,
            "the container's RabbitMQ answers",
            within=120,
        )
        yield f"amqp://guest:guest@127.0.0.1:{port}/"
    finally:
        subprocess.run(["docker", "stop", name], capture_output=True, check=False)
