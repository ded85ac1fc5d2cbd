"""The two ends of a claim as the pipeline sees them: what is asked of the store, and what follows from a no."""

from consumer.core.claim import ClaimRequest, Conflict, Done, Spent, Wait
from consumer.core.disposition import DeadLetter, Defer, Disposition, Duplicate
from consumer.core.job import Fault, Job
from schemas.codes import Code


def request(job: Job, owner: str, lease: int, crash_limit: int) -> ClaimRequest:
    """`lease` in milliseconds."""
    return ClaimRequest(
        kind=job.kind,
        key=job.key,
        fingerprint=job.fingerprint,
        owner=owner,
        lease=lease,
        crash_limit=crash_limit,
        attempt=job.attempt,
        generation=job.generation,
        submitted_at=job.submitted_at,
        deadline=job.deadline,
    )


def turned_down(claim: Spent | Done | Conflict | Wait, now: int) -> Disposition:
    """What becomes of a delivery that may not run. `now` is epoch ms."""
    match claim:
        case Done(reason):
            return Duplicate(reason)
        case Wait(milliseconds):
            return Defer(now + milliseconds, "leased")
        case Conflict():
            return DeadLetter(Fault(Code.KEY_CONFLICT, "KeyConflict", "this key belongs to a job with another payload"))
        case Spent(crashes=crashes):
            died = f"{crashes} daemons in a row died while they held this job"
            return DeadLetter(Fault(Code.WORKER_CRASHED, "WorkerCrashed", died))
