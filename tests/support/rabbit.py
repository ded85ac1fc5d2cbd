"""A private RabbitMQ node on loopback, shared by the tests of a session; each test gets a vhost of its own.

CONSUMER_TEST_BROKER=next runs RabbitMQ 4.3 through rabbitmq-next instead of the installed package.
"""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.leash import ROOT, Leash
from tests.support.server import Server
from tests.support.waiting import free_port, until

NEXT = os.environ.get("CONSUMER_TEST_BROKER") == "next"
NEXT_SCRIPT = ROOT.parent / "shared" / "bin" / "rabbitmq-next"
DEBIAN_PROGRAMS = "/usr/lib/rabbitmq/bin"  # those on the PATH there insist on another user
LEAN = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
UNCONNECTED = "failed to connect to node"
ALARMS = {
    "memory": (
        "vm_memory_monitor:set_vm_memory_high_watermark(0.0000001)",
        "vm_memory_monitor:set_vm_memory_high_watermark(0.6)",
    ),
    "disk": ('rabbit_disk_monitor:set_disk_free_limit("1000000GB")', 'rabbit_disk_monitor:set_disk_free_limit("50MB")'),
}
ALARMED = "(fun Wait() -> case rabbit_alarm:get_alarms() =/= [] of {} -> ok; _ -> timer:sleep(5), Wait() end end)()"
"""Returns when there is an alarm, or none: its monitors tell of it some time after they were told to."""
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"


@dataclass(frozen=True, slots=True)
class Programs:
    """How to run RabbitMQ, where its files go, and what its programs take for the root of the file system."""

    server: list[str]
    ctl: list[str]
    files: Path = Path(tempfile.gettempdir())
    root: Path = Path("/")


def find_programs() -> Programs:
    if NEXT:
        script = str(NEXT_SCRIPT)
        root = subprocess.run([script, "install"], check=True, capture_output=True, text=True).stdout.strip()
        return Programs([script, "server"], [script, "ctl"], files=Path(root, "tmp"), root=Path(root))
    path = f"{DEBIAN_PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    server, ctl = shutil.which("rabbitmq-server", path=path), shutil.which("rabbitmqctl", path=path)
    if not server or not ctl:
        raise RuntimeError("RabbitMQ isn't installed: run `make setup` as root, or install rabbitmq-server")
    return Programs([server], [ctl])


class Rabbit(Server):
    """One node with its own ports, data and epmd. `settings` are lines of rabbitmq.conf; a plugin costs seconds."""

    process = "beam.smp"

    def __init__(self, settings: Mapping[str, str] | None = None, plugins: Sequence[str] = ()) -> None:
        self._programs = find_programs()
        self._folder = Path(tempfile.mkdtemp(prefix="rabbit-", dir=self._programs.files))
        self._log = self._folder / "log"
        self.port = free_port()
        self._node = f"test-{self.port}@localhost"
        self._env = self._environment()
        self._numbers = count(1)
        self._write_files(settings or {}, plugins)
        self.start()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Boot on the same ports and data as before."""
        self._leash = Leash(self._programs.server, folder=self._folder, output=self._log, env=self._env)
        until(self._answers, f"RabbitMQ answers on port {self.port}")

    @contextmanager
    def alarm(self, resource: str) -> Iterator[None]:
        """Let it find for a while that it has too little of a resource."""
        raise_it, clear_it = ALARMS[resource]
        self.evaluate(f"{raise_it}, {ALARMED.format('true')}")
        try:
            yield
        finally:
            self.evaluate(f"{clear_it}, {ALARMED.format('false')}")

    def ctl(self, *arguments: str) -> str:
        """Run rabbitmqctl. It takes most of a second: prefer `evaluate` where a test does it often."""
        command = [*self._programs.ctl, "--quiet", "--node", self._node, *arguments]
        return self._run(command)

    def evaluate(self, erlang: str) -> str:
        """Evaluate expressions in the node, within milliseconds, and return what the last one gives."""
        answer = self._call(f"{erlang}.\n")
        if not answer.startswith("{ok, "):
            raise RuntimeError(f"{erlang} gave {answer}")
        return answer.removeprefix("{ok, ").removesuffix("}")

    def _call(self, text: str) -> str:
        """A busy node now and then refuses the connection: then nothing was evaluated."""
        command = ["erl_call", "-sname", self._node, "-c", self._cookie, "-e"]
        for _ in range(3):
            try:
                return self._run(command, text)
            except RuntimeError as error:
                if UNCONNECTED not in str(error):
                    raise
        return self._run(command, text)

    def vhost(self) -> str:
        """Create a fresh virtual host and return its URL."""
        name = f"v{next(self._numbers)}"
        everything = ", ".join(['<<".*">>'] * 3)
        self.evaluate(
            f'ok = rabbit_vhost:add(<<"{name}">>, <<"tests">>), '
            f"ok = rabbit_auth_backend_internal:set_permissions("
            f'<<"guest">>, <<"{name}">>, {everything}, <<"tests">>)'
        )
        return self.url + name

    def delete_vhost(self, url: str) -> None:
        """Delete it with its queues, which would cost the node work as long as it runs."""
        self.evaluate(f'rabbit_vhost:delete(<<"{urlsplit(url).path[1:]}">>, <<"tests">>)')

    def close_connections(self) -> None:
        """Close every connection, with a reason, as an operator would."""
        self.ctl("close_all_connections", "--global", "closed by a test")

    def _answers(self) -> bool:
        if not self._leash.running:
            raise RuntimeError(f"RabbitMQ ended during its start:\n{self._log.read_text()[-2000:]}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(PROTOCOL_HEADER)
                return probe.recv(1) == b"\x01"
        except OSError:
            return False

    def _run(self, command: list[str], text: str | None = None) -> str:
        done = subprocess.run(
            command, env=self._env, input=text, capture_output=True, text=True, check=False, timeout=60
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
        return done.stdout

    def _inside(self, name: str) -> str:
        """The path of one of our files as RabbitMQ's programs see it."""
        return f"/{(self._folder / name).relative_to(self._programs.root)}"

    def _environment(self) -> dict[str, str]:
        ours = {name: os.environ[name] for name in ("PATH", "RABBITMQ_NEXT_ROOT") if name in os.environ}
        return ours | {
            "LANG": "C.UTF-8",
            "HOME": self._inside("."),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(free_port()),
            "RABBITMQ_NODENAME": self._node,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": self._inside("data"),
            "RABBITMQ_LOG_BASE": self._inside("logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": self._inside("pid"),
            "RABBITMQ_CONF_ENV_FILE": self._inside("none"),
            "RABBITMQ_CONFIG_FILE": self._inside("rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": self._inside("plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": LEAN,
            "RABBITMQ_CTL_ERL_ARGS": "+S 1:1 +sbwt none",
        }

    def _write_files(self, settings: Mapping[str, str], plugins: Sequence[str]) -> None:
        self._cookie = self._folder.name
        cookie = self._folder / ".erlang.cookie"
        cookie.write_text(self._cookie)
        cookie.chmod(0o400)
        (self._folder / "plugins").write_text(f"[{','.join(plugins)}].")
        lines = [f"{name} = {value}\n" for name, value in settings.items()]
        (self._folder / "rabbitmq.conf").write_text("".join(lines))
