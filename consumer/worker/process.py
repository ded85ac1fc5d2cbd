"""What the zygote and the children ask of the operating system."""

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """Be killed when `parent` dies, however it dies; end now if it died before we could ask for that."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def limit_memory(limit: int) -> None:
    """Make the allocation that passes `limit` bytes of address space fail, here and in no other process."""
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def address_space() -> int:
    """The bytes of address space that this process has now."""
    with open("/proc/self/statm") as statm:  # noqa: PTH123 - pathlib is not needed in children
        return int(statm.read().split()[0]) * resource.getpagesize()


def kill_group(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal a child with all that it has started. Its group bears its pid, unless it is too young to have one."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, number)
        except ProcessLookupError:
            continue
        return
