"""Runs a server so that nothing of it outlives the test process, whichever way that ends.

    python -m tests.support.leash [--user NAME] [--signal NUMBER] --folder FOLDER -- COMMAND...

The test process holds the write end of our stdin. When it dies, also by SIGKILL, we read the end of the
file, kill the server with everything that it started, and remove FOLDER. On SIGTERM we ask the server to
end (by SIGTERM or NUMBER), give it time, and then kill what is left; the folder stays, so that the server can
start again. Daemonized processes (epmd) become our own children, because we are their subreaper.
"""

import argparse
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
GRACE = 10
"""Seconds between SIGTERM and SIGKILL."""
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class Leash:
    """The test's end of it: one server process and all of its descendants."""

    def __init__(
        self,
        command: list[str],
        *,
        folder: Path,
        output: Path,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        gently: signal.Signals = signal.SIGTERM,
    ) -> None:
        """`output` collects what the server prints; `folder` goes when this process dies."""
        options = ["--folder", str(folder), "--signal", str(int(gently)), *(["--user", user] if user else [])]
        with output.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.leash", *options, "--", *command],
                cwd=ROOT,
                env=env,
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """End the server gently."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        self._end()

    def kill(self, program: str) -> None:
        """End the server by SIGKILL to all that run `program`, as a power failure would."""
        _send(signal.SIGKILL, self._running(program))
        self._end()

    @contextmanager
    def paused(self, program: str) -> Iterator[None]:
        """Freeze all that run `program`: their connections stay open and silent."""
        pids = self._running(program)
        _send(signal.SIGSTOP, pids)
        until(lambda: all(map(_is_stopped, pids)), f"{program} has stopped")
        try:
            yield
        finally:
            _send(signal.SIGCONT, pids)

    def drop(self) -> None:
        """Kill everything and remove the folder: what happens as well when this process dies."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()

    def _running(self, program: str) -> list[int]:
        return [pid for pid in descendants(self._process.pid) if program_of(pid) == program]

    def _end(self) -> None:
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()


def die_with_parent() -> None:
    """See to it that this process is killed as soon as the one that started it has ended."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(pid: int) -> Iterator[int]:
    """Yield the pids of all descendants, nearest first."""
    children = defaultdict(list)
    for child, parent in _processes():
        children[parent].append(child)
    level = children[pid]
    while level:
        yield from level
        level = [child for parent in level for child in children[parent]]


def _processes() -> Iterator[tuple[int, int]]:
    """Yield (pid, pid of the parent) of every process."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        yield int(stat.parent.name), int(fields[1])


def program_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _is_stopped(pid: int) -> bool:
    """Tell whether no thread runs any more: where the CPUs are busy, some run on after SIGSTOP."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(stat.read_text().rpartition(")")[2].split()[0] in "TZ" for stat in threads)


def main() -> None:
    options = _options()
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signals, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
        signal.signal(number, _noted)
    server = subprocess.Popen(
        options.command,
        stdin=subprocess.DEVNULL,
        cwd=options.folder,
        user=options.user,
        group=options.user,
        extra_groups=[] if options.user else None,
        preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509 - we have no threads
    )
    abandoned = _watch(server.pid, options.signal, signals)
    _kill_descendants()
    if abandoned:
        shutil.rmtree(options.folder, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--user")
    parser.add_argument("--signal", type=int, default=signal.SIGTERM)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def _noted(number: int, frame: FrameType | None) -> None:
    """Only here so that the signal wakes the select below."""


def _watch(server: int, gently: int, signals: int) -> bool:
    """Return once the server has ended (False) or nobody holds our stdin any more (True)."""
    stdin = sys.stdin.fileno()
    while server not in _reap():
        ready, _, _ = select.select([stdin, signals], [], [])
        if stdin in ready:
            return True
        seen = os.read(signals, 64)
        if signal.SIGALRM in seen:
            return False
        if signal.SIGTERM in seen:
            os.kill(server, gently)
            signal.alarm(GRACE)
    return False


def _reap() -> list[int]:
    """Collect the children that have ended; RabbitMQ lets an epmd end in our care every minute."""
    ended: list[int] = []
    with suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            ended.append(pid)
    return ended


def _kill_descendants() -> None:
    """End every process that is ours, until none is left: orphans of the killed come to us as children."""
    while True:
        _send(signal.SIGKILL, descendants(os.getpid()))
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
