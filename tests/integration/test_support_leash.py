"""Nothing that a test starts outlives it, even when the test process is killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.leash import ROOT, Leash, descendants, program_of
from tests.support.waiting import until

SERVER_WITH_A_DAEMON = ["sh", "-c", "(setsid sleep 1000 &); exec sleep 1000"]
LEASHED = f"""
import pathlib, signal, sys
from tests.support.leash import Leash
folder = pathlib.Path(sys.argv[1])
leash = Leash({SERVER_WITH_A_DAEMON}, folder=folder, output=folder / "log")
print(flush=True)
signal.pause()
"""
SERVERS = """
import signal
from tests.support.postgres import Postgres
from tests.support.rabbit import Rabbit
with Rabbit() as rabbit, Postgres() as postgres:
    print(flush=True)
    signal.pause()
"""

NEVER_ENDS = f"""
import signal
from tests.support.leash import Leash

def test(tmp_path):
    Leash({SERVER_WITH_A_DAEMON}, folder=tmp_path, output=tmp_path / "log")
    signal.pause()
"""


@contextmanager
def running(program: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program until it says that its servers are up."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == b"\n"
            yield process
        finally:
            process.kill()


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_server_and_its_daemons_end_with_a_killed_test_process(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    with running(LEASHED, str(folder)) as process:
        until(lambda: len(list(descendants(process.pid))) == 3, "leash, server and daemon run")
        family = list(descendants(process.pid))
        process.kill()
        until(lambda: not alive(family), "the family is gone", within=5)
        assert not folder.exists()


def test_a_server_ends_with_a_killed_leash(tmp_path: Path) -> None:
    with running(LEASHED, str(tmp_path)) as process:
        until(lambda: len(list(descendants(process.pid))) == 3, "leash, server and daemon run")
        leash, server, daemon = descendants(process.pid)
        os.kill(leash, signal.SIGKILL)
        until(lambda: not alive([server]), "the server is gone", within=5)
        os.kill(daemon, signal.SIGKILL)  # nobody is left to do it


def test_rabbitmq_and_postgresql_end_with_a_killed_test_process() -> None:
    with running(SERVERS) as process:
        family = list(descendants(process.pid))
        programs = {program_of(pid) for pid in family}
        assert {"beam.smp", "epmd", "postgres"} <= programs
        process.kill()
        until(lambda: not alive(family), "the servers are gone", within=10)


def test_a_server_of_a_worker_ends_with_a_killed_pytest(tmp_path: Path) -> None:
    module = tmp_path / "test_never_ends.py"
    module.write_text(NEVER_ENDS)
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "--numprocesses", "1", str(module)]
    with subprocess.Popen([sys.executable, "-m", "pytest", *options], cwd=ROOT, stdout=subprocess.DEVNULL) as pytest:
        until(lambda: len(list(descendants(pytest.pid))) == 4, "worker, leash, server and daemon run")
        family = list(descendants(pytest.pid))
        pytest.kill()
        until(lambda: not alive(family), "the family is gone", within=5)


def test_orphans_that_end_do_not_pile_up(tmp_path: Path) -> None:
    with running(LEASHED.replace("setsid sleep 1000", "setsid sleep 0.1"), str(tmp_path)) as process:
        until(lambda: len(list(descendants(process.pid))) == 2, "only leash and server are left", within=5)


def test_a_server_is_asked_to_stop_before_it_is_killed(tmp_path: Path) -> None:
    ready, farewell = tmp_path / "ready", tmp_path / "farewell"
    program = f"trap 'touch {farewell}; exit 0' TERM; touch {ready}; while :; do sleep 0.05; done"
    leash = Leash(["sh", "-c", program], folder=tmp_path, output=tmp_path / "log")
    until(ready.exists, "the server runs")
    leash.stop()
    assert farewell.exists()
    assert not leash.running
