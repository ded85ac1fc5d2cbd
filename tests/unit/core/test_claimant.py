"""What is asked of the store, and what follows where it says no."""

from consumer.core.claim import ClaimRequest, Conflict, Done, Spent, Wait
from consumer.core.claimant import request, turned_down
from consumer.core.disposition import DeadLetter, Defer, Duplicate
from consumer.core.job import Job
from schemas.codes import Code

NOW = 1_700_000_000_000


def test_a_claim_is_for_the_place_in_its_life_that_the_delivery_stands_for() -> None:
    job = Job("k", "a", b"1", attempt=3, generation=2, fingerprint=b"f", submitted_at=5, deadline=9)
    assert request(job, "us", 60_000, 3) == ClaimRequest("k", "a", b"f", "us", 60_000, 3, 3, 2, 5, 9)


def test_what_is_done_is_acked_and_what_is_leased_comes_back_when_the_lease_is_over() -> None:
    assert turned_down(Done("succeeded"), NOW) == Duplicate("succeeded")
    assert turned_down(Wait(1_500), NOW) == Defer(NOW + 1_500, "leased")


def test_a_conflict_and_a_job_that_killed_its_owners_are_given_up() -> None:
    for claim, code in ((Conflict(), Code.KEY_CONFLICT), (Spent(7, 2, 3), Code.WORKER_CRASHED)):
        given_up = turned_down(claim, NOW)
        assert isinstance(given_up, DeadLetter)
        assert given_up.fault.code is code
