"""Which jobs may have killed the zygote."""

from collections import OrderedDict

from consumer.core.outcome import Interrupted, Outcome, Usage
from consumer.worker.run import Run, crashed

ZYGOTE_DIED = Interrupted("zygote died")
_MOST = 1_000


class Suspects:
    """A job can end the zygote, which ends every child, and nobody sees who did it: so all that ran are suspects.

    A suspect runs alone the next time. If the zygote ends then too, it was that one.
    """

    def __init__(self) -> None:
        self._jobs: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __contains__(self, job: tuple[str, str]) -> bool:
        return job in self._jobs

    def judge(self, run: Run, outcome: Outcome) -> Outcome:
        """What to charge the run with. It is cleared by any outcome of its own."""
        job = (run.work.job.kind, run.work.job.key)
        if outcome == ZYGOTE_DIED and not run.work.alone:
            self._add(job)
            return outcome
        if self._jobs:
            self._jobs.pop(job, None)
        if outcome == ZYGOTE_DIED:
            return crashed("lost the process that all children come from", Usage(), out_of_memory=False)
        return outcome

    def _add(self, job: tuple[str, str]) -> None:
        self._jobs[job] = None
        if len(self._jobs) > _MOST:
            self._jobs.popitem(last=False)
