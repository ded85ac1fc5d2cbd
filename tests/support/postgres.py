"""A private PostgreSQL on loopback, shared by the tests of a session; each test gets its own database."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.leash import Leash
from tests.support.server import Server
from tests.support.waiting import free_port, until

DEBIAN_PROGRAMS = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))  # 15 is what we test on
INITDB_OPTIONS = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
GUARDED = "guarded"
"""A role that has to show a password; create it where a test wants it. All others are trusted."""
UNSAFE_BUT_FAST = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]


def program(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([*DEBIAN_PROGRAMS, os.environ["PATH"]]))
    if not found:
        raise RuntimeError("PostgreSQL isn't installed: run `make setup` as root, or install postgresql-15")
    return found


class Postgres(Server):
    """One server with its own port and data. Benchmarks want `durable`, which tests needn't pay for."""

    process = "postgres"

    def __init__(self, *, durable: bool = False, options: Sequence[str] = ()) -> None:
        # PostgreSQL refuses to run as root
        self._user = "postgres" if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._log = self._folder / "log"
        self.port = free_port()
        self._options = [*options, *([] if durable else UNSAFE_BUT_FAST)]
        self._numbers = count(1)
        self._create()
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start on the same port and data as before."""
        options = ["listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories=", "jit=off"]
        settings = [part for option in options + self._options for part in ("-c", option)]
        self._leash = Leash(
            [program("postgres"), "-D", str(self._folder / "data"), *settings],
            folder=self._folder,
            output=self._log,
            user=self._user,
            gently=signal.SIGINT,  # SIGTERM would wait for the clients to leave
        )
        until(self._answers, f"PostgreSQL answers on port {self.port}")

    def psql(self, sql: str, url: str | None = None) -> str:
        """Run statements and return their rows, columns separated by "|"."""
        command = [program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, url or self.url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"psql failed: {done.stderr}")
        return done.stdout.strip()

    def create_database(self) -> str:
        """Create a fresh database and return its URL."""
        name = f"d{next(self._numbers)}"
        self.psql(f"create database {name} template template0")
        return self.url.removesuffix("postgres") + name

    def drop_database(self, url: str) -> None:
        self.psql(f"drop database {urlsplit(url).path[1:]} with (force)")

    def _create(self) -> None:
        if self._user:
            shutil.chown(self._folder, self._user, self._user)
        subprocess.run(
            [program("initdb"), "-D", str(self._folder / "data"), *INITDB_OPTIONS],
            check=True,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user else None,
        )
        rules = self._folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all {GUARDED} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")

    def _answers(self) -> bool:
        if not self._leash.running:
            raise RuntimeError(f"PostgreSQL ended during its start:\n{self._log.read_text()[-2000:]}")
        probe = [program("pg_isready"), "-q", "-d", self.url]
        return subprocess.run(probe, check=False).returncode == 0
