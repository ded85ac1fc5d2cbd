"""Three RabbitMQ nodes on loopback that form one cluster, with an epmd of their own."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.support.leash import Leash
from tests.support.rabbit import Rabbit
from tests.support.waiting import free_port

NODES = 3
QUEUE = "jobs.default"
"""Whose leader is hit when the cluster is told to lose a node."""

SOON_AGAIN = "-rabbit dead_letter_worker_publisher_confirm_timeout 5000"
"""Milliseconds. A delay queue publishes again what the next queue lost with its leader; after 3 min by default."""


class Node(Rabbit):
    """A node that shares cookie and epmd with the others of its cluster."""

    def __init__(self, cookie: str, epmd: int) -> None:
        self._shared_cookie = cookie
        self._epmd = epmd
        super().__init__()

    @property
    def name(self) -> str:
        return self._node

    def _environment(self) -> dict[str, str]:
        ours = super()._environment()
        arguments = f"{ours['RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS']} {SOON_AGAIN}"
        return ours | {"ERL_EPMD_PORT": str(self._epmd), "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": arguments}

    def _write_files(self, settings: Mapping[str, str], plugins: Sequence[str]) -> None:
        super()._write_files(settings, plugins)
        self._cookie = self._shared_cookie
        cookie = self._folder / ".erlang.cookie"
        cookie.unlink()
        cookie.write_text(self._cookie)
        cookie.chmod(0o400)


class Cluster:
    """Like a `Rabbit`, but what is killed, stopped or paused is the node that leads the queue."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="epmd-"))
        epmd = free_port()
        command = [shutil.which("epmd") or "epmd", "-port", str(epmd), "-address", "127.0.0.1"]
        self._epmd = Leash(command, folder=self._folder, output=self._folder / "log")
        self.nodes: list[Node] = []
        for _ in range(NODES):
            self._join(Node(self._folder.name, epmd))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.drop()
        self._epmd.drop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def vhost(self) -> str:
        url = self.nodes[0].vhost()
        self._vhost = urlsplit(url).path[1:]
        return url

    def urls(self, vhost: str) -> list[str]:
        """The same virtual host at every node."""
        return [node.url + urlsplit(vhost).path[1:] for node in self.nodes]

    def kill(self) -> None:
        self._lost = self._leader()
        self._lost.kill()

    def stop(self) -> None:
        self._lost = self._leader()
        self._lost.stop()

    def start(self) -> None:
        self._lost.start()

    def paused(self) -> AbstractContextManager[None]:
        return self._leader().paused()

    def close_connections(self) -> None:
        self.nodes[0].close_connections()

    def ctl(self, *arguments: str) -> str:
        return self.nodes[0].ctl(*arguments)

    def _leader(self) -> Node:
        """Asked while all nodes are up."""
        lines = self.ctl("list_queues", "-p", self._vhost, "name", "leader").splitlines()
        leaders = dict(line.split("\t") for line in lines if line.count("\t") == 1)
        return next(node for node in self.nodes if node.name == leaders[QUEUE])

    def _join(self, node: Node) -> None:
        if self.nodes:
            node.ctl("stop_app")
            node.ctl("join_cluster", self.nodes[0].name)
            node.ctl("start_app")
        self.nodes.append(node)
