"""Ends this process at a named place, so that users can see what a crash there does to their own jobs."""

import os
import signal

import structlog

from consumer.core.checkpoint import Checkpoint


class Unarmed:
    """What runs in production: nothing happens anywhere."""

    def passed(self, checkpoint: Checkpoint) -> None:
        pass


class Armed:
    """SIGKILL at the `after`-th pass of `crash_at`: no clean-up of ours runs, as in a power failure."""

    def __init__(self, crash_at: Checkpoint, after: int) -> None:
        self._crash_at = crash_at
        self._left = after
        self._log = structlog.get_logger("consumer.checkpoints")
        self._log.warning("this daemon will kill itself", crash_at=str(crash_at), crash_after=after)

    def passed(self, checkpoint: Checkpoint) -> None:
        if checkpoint is not self._crash_at:
            return
        self._left -= 1
        if self._left == 0:
            self._log.warning("killing myself, as faults.crash_at asks for", crash_at=str(checkpoint))
            os.kill(os.getpid(), signal.SIGKILL)


def checkpoints(crash_at: str, after: int) -> Unarmed | Armed:
    """`crash_at` is a checkpoint's name, or nothing."""
    return Armed(Checkpoint(crash_at), after) if crash_at else Unarmed()
