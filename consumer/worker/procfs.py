"""What the parent sees of a child from outside, without asking it: whether it is stopped, and what it holds."""

from contextlib import suppress
from pathlib import Path
from resource import getpagesize

_KIBIBYTE = 1024
_PRIVATE = ("RssAnon:", "RssShmem:")


def state(pid: int) -> str:
    """As the kernel has it, a letter; nothing where it can't be told."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def is_stopped(pid: int) -> bool:
    """By SIGSTOP, or by a debugger."""
    return state(pid) in ("T", "t")


def is_dead(pid: int) -> bool:
    """Though nobody may have asked yet how it ended."""
    return state(pid) in ("", "Z")


def waits(pid: int) -> bool:
    """For something to happen, and not for a processor."""
    return state(pid) == "S"


def resident(pid: int) -> int:
    """Bytes of memory that it has, shared ones included. 0 where it can't be told."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * getpagesize()
    return 0


def own_memory(pid: int) -> int:
    """The resident bytes that nobody could take back: not those of mapped files. 0 where it can't be told."""
    with suppress(OSError, ValueError):
        lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return sum(int(line[1]) for line in lines if line[:1] and line[0] in _PRIVATE) * _KIBIBYTE
    return 0
