"""Everything that was found out about one delivery, as the value that the last hops act on."""

from dataclasses import dataclass

from consumer.core.claim import Run, Spent
from consumer.core.disposition import Disposition
from consumer.core.job import Job
from consumer.core.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind` and `key`: what the envelope said, where it could be read. `claim` is held until this is carried out."""

    disposition: Disposition
    kind: str | None = None
    key: str | None = None
    job: Job | None = None
    claim: Run | Spent | None = None
    outcome: Outcome | None = None

    @property
    def generation(self) -> int:
        if isinstance(self.claim, Run):
            return self.claim.generation
        return self.job.generation if self.job is not None else 0

    @property
    def attempt(self) -> int:
        """The attempt that this delivery stands for."""
        if self.claim is not None:
            return self.claim.attempt
        return self.job.attempt if self.job is not None else 1
