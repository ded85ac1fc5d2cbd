"""Temporary folders: one for each run that asks, within one for each child, within one for each zygote."""

import fcntl
import os
import re
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

_PREFIX = "consumer-jobs-"
_NAME = re.compile(_PREFIX + "[0-9a-f]{32}")


class Place:
    """A zygote's, under a name that nobody can guess, and its own as long as it lives.

    `path` is empty where nothing can be written: that concerns only jobs that want a folder.
    """

    def __init__(self) -> None:
        self.path = ""
        with suppress(OSError):
            path = str(Path(tempfile.gettempdir()) / f"{_PREFIX}{secrets.token_hex(16)}")
            self._lock = _made_and_locked(path)
            self.path = path

    def of(self, child: int) -> str:
        return f"{self.path}/{child}" if self.path else ""

    def let_go(self) -> None:
        """In a child, whose own children may outlive us all."""
        if self.path:
            os.close(self._lock)

    def remove_abandoned(self) -> None:
        """Those of zygotes that were killed; what a container leaves may be there for its successor."""
        if not self.path:
            return
        for other in Path(self.path).parent.iterdir():
            if _NAME.fullmatch(other.name):
                with suppress(OSError):
                    os.close(_locked(str(other), fcntl.LOCK_EX | fcntl.LOCK_NB))
                    remove(str(other))


def make(place: str) -> Path:
    """A new folder in the place of a child, for our user alone."""
    if not place:
        raise FileNotFoundError("there is no folder for temporary files in which this process may write")
    Path(place).mkdir(mode=0o700, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="", dir=place))


def remove(folder: str) -> None:
    """With all that is in it, and nothing that a link leads to, though a job took our right to look into it.

    Each folder within is moved to the top before its turn comes: so no depth is too deep, and no path too long.
    """
    with suppress(OSError):
        if os.path.islink(folder) or not os.path.isdir(folder):  # noqa: PTH112, PTH114 - pathlib costs too much here
            os.unlink(folder)  # noqa: PTH108
            return
        os.chmod(folder, 0o700)  # noqa: PTH101
        waiting = _cleared(folder)
        for each in waiting:
            for inner in _cleared(each):
                waiting.append(f"{folder}/{secrets.token_hex(16)}")
                os.rename(inner, waiting[-1])  # noqa: PTH104
            with suppress(OSError):
                os.rmdir(each)  # noqa: PTH106
        os.rmdir(folder)  # noqa: PTH106


def _cleared(folder: str) -> list[str]:
    """The folders that are in it, opened up; all else is removed."""
    folders = []
    for entry in [*os.scandir(folder)]:
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry, 0o700)  # noqa: PTH101
            folders.append(entry.path)
        else:
            with suppress(OSError):
                os.unlink(entry)  # noqa: PTH108
    return folders


def exit_after(work: Callable[[], None]) -> NoReturn:
    """All that a process does that was forked for it; it holds open nothing of the one that it came from."""
    try:
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        work()
    finally:
        os._exit(0)


def _made_and_locked(path: str) -> int:
    """Again, where somebody took it for abandoned before we had the lock."""
    while True:
        Path(path).mkdir(mode=0o700, exist_ok=True)
        lock = _locked(path, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if Path(path).stat().st_ino == os.fstat(lock).st_ino:
                return lock
        os.close(lock)


def _locked(path: str, how: int) -> int:
    """Raises OSError also where it isn't ours, or no folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
