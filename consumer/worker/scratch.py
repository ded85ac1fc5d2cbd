"""Temporary folders: one for each run that asks, within one for each child, within one for each zygote."""

import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NoReturn


def new_place() -> str:
    """Where a zygote's children may make folders: a path that nobody else can know, and that need not be there."""
    return str(Path(tempfile.gettempdir()) / f"consumer-{os.getpid()}-{secrets.token_hex(8)}")


def place_of(child: int, place: str) -> str:
    return f"{place}/{child}"


def make(place: str) -> Path:
    """A new folder in `place`, for our user alone."""
    for folder in (Path(place).parent, Path(place)):
        folder.mkdir(mode=0o700, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="", dir=place))


def remove(folder: str) -> None:
    """With all that is in it, and nothing that a link leads to, though a job took our right to look into it."""
    with suppress(OSError):
        if not _removed(folder):
            _open_up(folder)
            _removed(folder)


def remove_and_exit(folder: str) -> NoReturn:
    """All that a process does that was forked for it."""
    try:
        remove(folder)
    finally:
        os._exit(0)


def _removed(folder: str) -> bool:
    if os.path.islink(folder):  # noqa: PTH114 - the other functions here want text
        os.unlink(folder)  # noqa: PTH108
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return not os.path.lexists(folder)


def _open_up(folder: str) -> None:
    os.chmod(folder, 0o700)  # noqa: PTH101
    for parent, names, _ in os.walk(folder):
        for name in names:
            inner = os.path.join(parent, name)  # noqa: PTH118
            if not os.path.islink(inner):  # noqa: PTH114
                os.chmod(inner, 0o700)  # noqa: PTH101
