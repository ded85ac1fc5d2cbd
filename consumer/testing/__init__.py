"""For people who test their handlers: `run` is one run, `MemoryDaemon` a daemon without a broker or a database.

Both go the way of the real daemon, in the process of the test. See docs/testing.md.
"""

from consumer.testing.daemon import MemoryDaemon
from consumer.testing.outcome import RunOutcome
from consumer.testing.single import run

__all__ = ["MemoryDaemon", "RunOutcome", "run"]
