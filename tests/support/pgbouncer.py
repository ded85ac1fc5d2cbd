"""A private pgbouncer in transaction mode on loopback, before the databases of one PostgreSQL server."""

import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.leash import Leash
from tests.support.postgres import Postgres
from tests.support.server import Server
from tests.support.waiting import free_port, until

SERVER_SESSIONS = 3
"""Fewer than clients, so that a client's statements go to one session and to another."""
CONFIG = """
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
"""


class PgBouncer(Server):
    process = "pgbouncer"

    def __init__(self, server: Postgres) -> None:
        # it refuses to run as root; Debian's package runs it as this user, too
        user = "postgres" if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="pgbouncer-"))
        self._log = self._folder / "log"
        self.port = free_port()
        config = self._folder / "pgbouncer.ini"
        config.write_text(CONFIG.format(server=server.port, port=self.port, sessions=SERVER_SESSIONS))
        if user:
            shutil.chown(self._folder, user, user)
        self._leash = Leash([_program(), str(config)], folder=self._folder, output=self._log, user=user)
        until(self._answers, f"pgbouncer answers on port {self.port}")

    def before(self, url: str) -> str:
        """The URL of a database through this pgbouncer."""
        return urlsplit(url)._replace(netloc=f"postgres@127.0.0.1:{self.port}").geturl()

    def _answers(self) -> bool:
        if not self._leash.running:
            raise RuntimeError(f"pgbouncer ended during its start:\n{self._log.read_text()[-2000:]}")
        return "listening on" in self._log.read_text()


def _program() -> str:
    found = shutil.which("pgbouncer", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
    if not found:
        raise RuntimeError("pgbouncer isn't installed: run `make setup` as root, or install pgbouncer")
    return found
