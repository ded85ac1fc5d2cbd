"""What the zygote and the children ask of the operating system."""

import ctypes
import os
import resource
import signal
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_IOLBF = 1
_PR_SET_CHILD_SUBREAPER = 36
_DATA_FIELD = 5
_KIBIBYTE = 1024
_OOM_SCORE = "/proc/self/oom_score_adj"
_VICTIM_FIRST = 500
_FOR_EVERYBODY = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
"""What a terminal or a service manager sends to all processes."""
_libc = ctypes.CDLL(None, use_errno=True)


def die_with(parent: int) -> None:
    """Be killed when `parent` dies, however it dies; end now if it died before we could ask for that."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def outlive_the_parent() -> None:
    """From now on: to clear up after it. Its death only wakes us, where somebody stopped us."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def adopt_orphans() -> None:
    """Become the parent of what a descendant starts and leaves, as daemons do, instead of the container's init."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def mind_no_signals() -> None:
    """In a child, those for everybody. Not by SIG_IGN, which the programs that a job starts would inherit."""
    for number in _FOR_EVERYBODY:
        signal.signal(number, lambda *_: None)


def let_copies_end() -> None:
    """What a job forks, as multiprocessing does, inherits our handlers, and is to end as any process does.

    Meanwhile the signals are blocked: what comes to a copy before its first line would be forgotten.
    """
    ours = {number: signal.getsignal(number) for number in _FOR_EVERYBODY}
    masks = []

    def block() -> None:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_EVERYBODY))

    def unblock() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.pop())

    def become_ordinary() -> None:
        for number, handler in ours.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, signal.SIG_DFL)
        unblock()

    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=become_ordinary)


def die_before_the_parent() -> None:
    """Where the kernel is out of memory nevertheless, let it kill a child, and not the daemon, which is larger."""
    with suppress(OSError):
        with open(_OOM_SCORE) as score:  # noqa: PTH123
            adjusted = int(score.read())
        _write(_OOM_SCORE, str(min(adjusted + _VICTIM_FIRST, 1000)).encode())


def write_c_lines_at_once() -> None:
    """As C does at a terminal: into a pipe it writes when its buffer is full, whoever runs then."""
    _libc.setvbuf(ctypes.c_void_p.in_dll(_libc, "stdout"), None, _IOLBF, 0)


def limit_memory(limit: int) -> None:
    """Make the allocation that passes `limit` bytes of data fail, here and in no other process.

    Data is what is private and can be written to. Address space would also count what libraries only reserve, map
    from files or share, which may be many times the memory there is.
    """
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def limit_files(limit: int) -> None:
    if limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def data_size() -> int:
    """The bytes of data that this process has now."""
    with open("/proc/self/statm") as statm:  # noqa: PTH123 - pathlib is not needed in children
        return int(statm.read().split()[_DATA_FIELD]) * resource.getpagesize()


def peak() -> int:
    """The most memory that this process had, in bytes, since it began or since it was told to forget."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTE


def forget_peak() -> None:
    """Let the peak of memory that the kernel remembers begin anew with what this process has now."""
    with suppress(OSError):
        _write("/proc/self/clear_refs", b"5")


def children() -> list[int]:
    """Those of this process's main thread, the dead ones that nobody reaped included."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as pids:  # noqa: PTH123
            return [*map(int, pids.read().split())]
    except OSError:
        return []


def kill_group(pid: int, number: int = signal.SIGKILL) -> bool:
    """Signal a child with all that it has started. Its group bears its pid, unless it is too young to have one.

    False where there is nobody, or somebody else's process: a program may change its user.
    """
    for send in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            send(pid, number)
            return True
    return False


def _write(path: str, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)
