"""Who is on the CPU of an io child. The child writes it at each step; the parent reads it, also when the child is dead.

It is shared memory, since a blocked loop can't answer, and a dead child even less. Standard library only: both sides
use it.
"""

import fcntl
import mmap
import os

THREADS = 256
"""How many threads of an io child can be told apart."""
_STEPS, _WHO, _STRANGERS, _AT_ITSELF, _FIRST_THREAD = 0, 1, 2, 3, 4
_UNKNOWN = 2**64 - 1
_WORD = 8
_SIZE = _WORD * (_FIRST_THREAD + THREADS)


class Mark:
    """Words of 8 bytes, each written in one go: numbers of steps and of foreign threads, and ids of jobs, 0 for none.

    A cpu child only tells which job it began last.
    """

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, _SIZE)
        self.words = memoryview(self._memory).cast("Q")

    def close(self) -> None:
        self.words.release()
        self._memory.close()

    # the child's side

    def enter(self, job_id: int) -> None:
        """The loop begins a step of a job."""
        self.words[_STEPS] += 1
        self.words[_WHO] = job_id

    def enter_unknown(self) -> None:
        """The loop begins a step of ours, or of something that a job began for all."""
        self.enter(_UNKNOWN)

    def leave(self) -> None:
        self.words[_WHO] = 0

    def thread(self, number: int, job_id: int) -> None:
        """What a thread does from now on."""
        self.words[_FIRST_THREAD + number] = job_id

    def strangers(self, count: int) -> None:
        """So many threads there are of which nobody knows whose they are."""
        self.words[_STRANGERS] = count

    def at_its_own_process(self, job_id: int) -> None:
        """A job sends a signal to it, which may be the end; 0 where it was not."""
        self.words[_AT_ITSELF] = job_id

    # the parent's side

    @property
    def steps(self) -> int:
        return self.words[_STEPS]

    @property
    def who(self) -> int:
        """The job of the loop's present step, 0 for none that is known."""
        who = self.words[_WHO]
        return 0 if who == _UNKNOWN else who

    @property
    def has_strangers(self) -> bool:
        """Something is at work of which nobody knows whose it is."""
        return self.words[_STRANGERS] > 0 or self.words[_WHO] == _UNKNOWN

    @property
    def at_itself(self) -> frozenset[int]:
        """Who sent the signal that ended or stopped the child, where it was one of its jobs."""
        return frozenset({self.words[_AT_ITSELF]}) - {0}

    @property
    def in_threads(self) -> frozenset[int]:
        return frozenset(self.words[_FIRST_THREAD:]) - {0}


def shared_memory() -> int:
    """A descriptor for a mark that two processes share. Neither can make it smaller: the other would die of reading."""
    descriptor = os.memfd_create("consumer io child", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, _SIZE)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return descriptor
