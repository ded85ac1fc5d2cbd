import os
import signal
import subprocess
from mmap import mmap

from consumer.worker.procfs import is_dead, is_stopped, own_memory, resident, waits
from tests.support.waiting import until

NOBODY = 2**22 + 1
MEBIBYTES = 32


def test_a_process_that_is_stopped_is_told_from_one_that_runs_and_from_none() -> None:
    with subprocess.Popen(["sleep", "1000"]) as program:
        until(lambda: waits(program.pid), "a process that waits")
        assert not is_stopped(program.pid)
        os.kill(program.pid, signal.SIGSTOP)
        until(lambda: is_stopped(program.pid), "a stopped process")
        assert not is_dead(program.pid)
        program.kill()
        until(lambda: is_dead(program.pid), "a dead process that nobody has asked for")
    assert is_dead(NOBODY)
    assert not waits(NOBODY)
    assert not is_stopped(NOBODY)


def test_the_memory_of_a_process_is_what_it_wrote_to() -> None:
    before = own_memory(os.getpid())
    assert resident(os.getpid()) > before > 1_000_000
    with mmap(-1, MEBIBYTES * 1024 * 1024) as fresh:  # what Python allocates may be memory that others gave back
        assert own_memory(os.getpid()) - before < 8 * 1024 * 1024
        fresh.write(bytes(len(fresh)))
        assert own_memory(os.getpid()) - before > (MEBIBYTES - 8) * 1024 * 1024
    assert own_memory(NOBODY) == resident(NOBODY) == 0
