"""The claim table of the design, row by row, and what must hold for any row and any delivery."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.core.claim import (
    QUARANTINE_AFTER,
    Claim,
    ClaimRequest,
    Conflict,
    Done,
    Run,
    Spent,
    Wait,
    decide,
    remember,
)
from consumer.core.job import Fault
from consumer.core.row import HISTORY_LIMIT, Failure, Row, Status
from schemas.codes import Code

NOW = 1_000_000
LEASE = 30_000
CORRECTED = b"another payload"

REQUEST = ClaimRequest("mail.send", "order-7", b"a payload", "us", LEASE, crash_limit=3)
FAULT = Fault(Code.REJECTED, "ValueError", "no such address")
ROW = Row("mail.send", "order-7", Status.PENDING, fingerprint=b"a payload", token=7, first_seen_at=1)
RUNNING = replace(ROW, status=Status.PROCESSING, owner="them", lease_until=NOW + 500, attempt=2, started_at=NOW - 10)
ORPHANED = replace(RUNNING, lease_until=NOW)
RETRYING = replace(ROW, status=Status.RETRYING, attempt=2, fault=FAULT, due_at=NOW + 50)
FAILED = replace(
    ROW,
    status=Status.FAILED,
    attempt=3,
    fault=FAULT,
    history=(Failure(0, 3, NOW - 5, "rejected", "ValueError", "no", "them", b"a payload".hex()),),
)
SUCCEEDED = replace(ROW, status=Status.SUCCEEDED, result=b"1")
CANCELLED = replace(ROW, status=Status.CANCELLED)


def asked(row: Row | None, **delivery: object) -> Claim:
    return decide(row, replace(REQUEST, **delivery), NOW)[0]  # type: ignore[arg-type]


def left(row: Row | None, **delivery: object) -> Row | None:
    return decide(row, replace(REQUEST, **delivery), NOW)[1]  # type: ignore[arg-type]


def test_an_unknown_job_runs_at_the_attempt_of_its_header() -> None:
    assert asked(None) == Run(token=1, attempt=1)
    assert asked(None, attempt=4, generation=2) == Run(token=1, attempt=4, generation=2)


def test_an_unknown_job_gets_a_row_that_says_who_runs_it_and_until_when() -> None:
    assert left(None, submitted_at=5, deadline=9) == Row(
        "mail.send",
        "order-7",
        Status.PROCESSING,
        token=1,
        owner="us",
        lease_until=NOW + LEASE,
        fingerprint=b"a payload",
        submitted_at=5,
        first_seen_at=NOW,
        started_at=NOW,
        deadline=9,
    )


def test_a_pending_job_runs_whatever_its_delivery_says() -> None:
    assert asked(ROW) == Run(token=8, attempt=1)
    assert asked(ROW, fingerprint=CORRECTED) == Run(token=8, attempt=1)


def test_a_job_that_was_given_back_keeps_its_attempt_and_generation() -> None:
    given_back = replace(ROW, attempt=3, generation=1)
    assert asked(given_back, attempt=1, generation=0) == Run(token=8, attempt=3, generation=1)
    assert asked(given_back, attempt=1, generation=2) == Run(token=8, attempt=1, generation=2)


def test_a_suspect_that_was_given_back_is_still_a_suspect() -> None:
    assert asked(replace(ROW, crashes=QUARANTINE_AFTER)) == Run(8, 1, crashes=QUARANTINE_AFTER, alone=True)


def test_a_suspect_whose_next_attempt_is_here_has_survived() -> None:
    assert asked(replace(ROW, crashes=QUARANTINE_AFTER), attempt=2) == Run(8, 2)


def test_a_spent_job_that_was_given_back_since_its_dead_letter_was_not_confirmed_does_not_run_again() -> None:
    assert asked(replace(ROW, crashes=REQUEST.crash_limit)) == Spent(8, 1, REQUEST.crash_limit)


@pytest.mark.parametrize("row", [RUNNING, ORPHANED, RETRYING, SUCCEEDED], ids=lambda row: row.status)
def test_another_payload_under_a_taken_key_is_a_conflict_and_changes_nothing(row: Row) -> None:
    assert decide(row, replace(REQUEST, fingerprint=CORRECTED), NOW) == (Conflict(), None)


def test_another_payload_after_a_failure_is_a_correction_with_a_new_generation() -> None:
    answer, row = decide(FAILED, replace(REQUEST, fingerprint=CORRECTED, deadline=9), NOW)
    assert answer == Run(token=8, attempt=1, generation=1)
    assert row is not None
    assert (row.fingerprint, row.fault, row.deadline, row.history) == (CORRECTED, None, 9, FAILED.history)


@pytest.mark.parametrize("status", [Status.PENDING, Status.FAILED])
def test_an_old_copy_of_a_corrected_payload_is_stale(status: Status) -> None:
    corrected = replace(FAILED, status=status, generation=1, attempt=1, fingerprint=CORRECTED)
    assert decide(corrected, REQUEST, NOW) == (Done("stale"), None)
    assert asked(corrected, generation=2) == Run(token=8, attempt=1, generation=2)


def test_a_correction_whose_owner_died_runs_again_although_its_message_names_the_old_generation() -> None:
    corrected = replace(ORPHANED, generation=1, attempt=1, fingerprint=CORRECTED)
    assert asked(corrected, fingerprint=CORRECTED) == Run(token=8, attempt=1, generation=1, crashes=1)


@pytest.mark.parametrize("row", [SUCCEEDED, CANCELLED], ids=lambda row: row.status)
@pytest.mark.parametrize("delivery", [{}, {"attempt": 9}, {"generation": 9}], ids=str)
def test_a_job_with_a_final_state_is_done_for_every_delivery(row: Row, delivery: dict[str, int]) -> None:
    assert decide(row, replace(REQUEST, **delivery), NOW) == (Done(row.status), None)  # type: ignore[arg-type]


def test_a_failed_job_is_done_for_its_own_attempt() -> None:
    assert decide(FAILED, replace(REQUEST, attempt=3), NOW) == (Done("failed"), None)


def test_a_redrive_of_a_failed_job_starts_a_new_generation_at_attempt_one() -> None:
    answer, row = decide(FAILED, replace(REQUEST, generation=1), NOW)
    assert answer == Run(token=8, attempt=1, generation=1)
    assert row is not None
    assert (row.fault, row.history, row.crashes) == (None, FAILED.history, 0)


def test_a_redrive_takes_the_generation_that_its_message_names_so_that_its_redelivery_is_a_duplicate() -> None:
    answer, row = decide(FAILED, replace(REQUEST, generation=5), NOW)
    assert answer == Run(token=8, attempt=1, generation=5)
    assert row is not None
    failed_again = replace(row, status=Status.FAILED)
    assert asked(failed_again, generation=5) == Done("failed")


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_copy_of_an_attempt_that_is_over_is_stale_while_the_retry_waits(attempt: int) -> None:
    assert decide(RETRYING, replace(REQUEST, attempt=attempt), NOW) == (Done("stale"), None)


def test_the_retry_itself_runs_as_the_next_attempt() -> None:
    answer, row = decide(replace(RETRYING, crashes=2), replace(REQUEST, attempt=3), NOW)
    assert answer == Run(token=8, attempt=3)
    assert row is not None
    assert (row.due_at, row.crashes) == (None, 0)


def test_the_store_and_not_the_header_counts_attempts() -> None:
    assert asked(RETRYING, attempt=40) == Run(token=8, attempt=3)


def test_a_retry_whose_record_was_lost_waits_for_the_lease_and_then_runs() -> None:
    assert asked(RUNNING, attempt=3) == Wait(500)
    assert asked(ORPHANED, attempt=3) == Run(token=8, attempt=3)


def test_a_retry_whose_record_was_lost_here_does_not_wait_for_our_own_lease() -> None:
    ours = replace(RUNNING, owner="us")
    assert asked(ours, attempt=3) == Run(token=8, attempt=3)


def test_a_delivery_waits_as_long_as_another_owner_has_the_lease() -> None:
    assert decide(RUNNING, replace(REQUEST, attempt=2), NOW) == (Wait(500), None)
    assert asked(replace(RUNNING, lease_until=NOW + 1), attempt=2) == Wait(1)


def test_a_job_whose_owner_died_is_taken_over_at_the_same_attempt_and_charged_a_crash() -> None:
    answer, row = decide(ORPHANED, replace(REQUEST, attempt=2), NOW)
    assert answer == Run(token=8, attempt=2, crashes=1)
    assert row is not None
    assert (row.owner, row.lease_until, row.crashes) == ("us", NOW + LEASE, 1)


def test_a_job_whose_write_we_lost_runs_again_and_nobody_is_charged() -> None:
    assert asked(replace(RUNNING, owner="us"), attempt=2) == Run(token=8, attempt=2)


def test_an_earlier_attempts_copy_is_stale_when_the_owner_of_a_later_one_died() -> None:
    assert decide(ORPHANED, replace(REQUEST, attempt=1), NOW) == (Done("stale"), None)


def test_a_job_that_two_owners_died_under_runs_alone() -> None:
    assert asked(replace(ORPHANED, crashes=0), attempt=2) == Run(8, 2, crashes=1, alone=False)
    assert asked(replace(ORPHANED, crashes=1), attempt=2) == Run(8, 2, crashes=2, alone=True)


def test_a_job_at_the_crash_limit_is_spent_under_a_new_token() -> None:
    answer, row = decide(replace(ORPHANED, crashes=2), replace(REQUEST, attempt=2), NOW)
    assert answer == Spent(token=8, attempt=2, crashes=3)
    assert row is not None
    assert row.token == 8


def test_history_forgets_the_oldest_failure_first() -> None:
    row = ROW
    for attempt in range(1, HISTORY_LIMIT + 3):
        failure = Failure(0, attempt, NOW, "rejected", "ValueError", "no", "us")
        row = replace(row, history=remember(row, failure))
    assert [failure.attempt for failure in row.history] == list(range(3, HISTORY_LIMIT + 3))


small = st.integers(0, 3)
requests = st.builds(
    ClaimRequest,
    kind=st.just("mail.send"),
    key=st.just("order-7"),
    fingerprint=st.sampled_from([b"a payload", CORRECTED]),
    owner=st.sampled_from(["us", "them"]),
    lease=st.just(LEASE),
    crash_limit=st.integers(1, 3),
    attempt=st.integers(1, 4),
    generation=small,
)
rows = st.builds(
    Row,
    kind=st.just("mail.send"),
    key=st.just("order-7"),
    status=st.sampled_from(Status),
    attempt=st.integers(1, 4),
    generation=small,
    crashes=small,
    token=small,
    owner=st.sampled_from(["us", "them"]),
    lease_until=st.integers(NOW - 2, NOW + 2),
    fingerprint=st.sampled_from([b"a payload", CORRECTED]),
    history=st.sampled_from([(), FAILED.history]),
)


@given(rows, requests)
def test_a_claim_always_gets_a_token_that_no_one_had_before(row: Row, request: ClaimRequest) -> None:
    answer, claimed = decide(row, request, NOW)
    assert (claimed is not None) == isinstance(answer, Run | Spent)
    if claimed is not None:
        assert isinstance(answer, Run | Spent)
        assert answer.token == claimed.token == row.token + 1
        assert (claimed.status, claimed.owner, claimed.lease_until) == (
            Status.PROCESSING,
            request.owner,
            NOW + LEASE,
        )


@given(rows, requests)
def test_a_claim_never_goes_back_in_the_life_of_a_job(row: Row, request: ClaimRequest) -> None:
    claimed = decide(row, request, NOW)[1]
    if claimed is not None:
        assert (claimed.generation, claimed.attempt) >= (row.generation, row.attempt)
