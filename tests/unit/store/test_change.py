"""What a write does to a row, and the life of a row under any order of events."""

from dataclasses import replace

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from consumer.core.claim import ClaimRequest, Run, Spent, decide
from consumer.core.job import Fault
from consumer.core.row import HISTORY_LIMIT, Change, Ref, Row, Status
from consumer.store.change import apply
from schemas.codes import Code

NOW = 1_000
REF = Ref("mail.send", "order-7", 4)
FAULT = Fault(Code.REJECTED, "ValueError", "no such address", "Traceback …")
RUNNING = Row(
    "mail.send",
    "order-7",
    Status.PROCESSING,
    attempt=2,
    generation=1,
    crashes=1,
    token=4,
    owner="us",
    lease_until=5_000,
    fingerprint=b"\x01\xff",
    started_at=900,
)


def after(change: Change, row: Row = RUNNING) -> Row:
    says_so, changed = apply(row, change, NOW)
    assert says_so
    assert changed is not None
    return changed


def test_a_result_is_kept_with_what_the_run_cost_and_without_the_last_fault() -> None:
    change = Change(REF, Status.SUCCEEDED, b"1", started_at=950, finished_at=990, cpu_seconds=0.5, peak_memory=7)
    assert after(change, replace(RUNNING, fault=FAULT)) == replace(
        RUNNING,
        status=Status.SUCCEEDED,
        result=b"1",
        lease_until=None,
        started_at=950,
        finished_at=990,
        cpu_seconds=0.5,
        peak_memory=7,
    )


def test_a_run_without_times_of_its_own_gets_those_of_the_store() -> None:
    row = after(Change(REF, Status.SUCCEEDED, b"1"))
    assert (row.started_at, row.finished_at) == (900, NOW)


@pytest.mark.parametrize("status", [Status.RETRYING, Status.FAILED])
def test_a_failure_is_kept_and_remembered_with_its_place_in_the_life_of_the_job(status: Status) -> None:
    row = after(Change(REF, status, fault=FAULT, due_at=1_500))
    assert (row.status, row.fault, row.due_at) == (status, FAULT, 1_500)
    (failure,) = row.history
    assert (failure.generation, failure.attempt, failure.at, failure.owner) == (1, 2, NOW, "us")
    assert (failure.code, failure.error_type, failure.message) == ("rejected", "ValueError", "no such address")
    assert failure.fingerprint == "01ff"


def test_what_databases_refuse_in_a_text_is_shown_instead() -> None:
    odd = Fault(Code.REJECTED, "E\x00", "a\x00b \udce9 ü", "\x00")
    row = after(Change(REF, Status.FAILED, fault=odd))
    assert row.fault == Fault(Code.REJECTED, "E\\x00", "a\\x00b \\udce9 ü", "\\x00")
    assert row.history[0].message == "a\\x00b \\udce9 ü"


def test_a_claim_that_is_given_back_charges_nobody_and_may_run_from_now_on() -> None:
    assert after(Change(REF, Status.PENDING)) == replace(
        RUNNING, status=Status.PENDING, owner=None, lease_until=None, started_at=None, due_at=NOW
    )


def test_a_write_for_no_row_or_another_token_changes_nothing() -> None:
    change = Change(REF, Status.SUCCEEDED, b"1")
    assert apply(None, change, NOW) == (False, None)
    assert apply(replace(RUNNING, token=5), change, NOW) == (False, None)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PROCESSING])
def test_a_write_that_was_applied_before_is_true_and_any_other_is_too_late(status: Status) -> None:
    for asked in (Status.SUCCEEDED, Status.RETRYING, Status.FAILED, Status.PENDING):
        assert apply(replace(RUNNING, status=status), Change(REF, asked), NOW) == (asked is status, None)


class LifeOfARow(RuleBasedStateMachine):
    """Any order of deliveries, writes, deaths and time. Owners tell the truth about what runs in them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.row: Row | None = None
        self.runs: dict[str, int] = {}
        self.result: bytes | None = None
        self.tokens = [0]

    @rule(
        owner=st.sampled_from("abc"),
        attempt=st.integers(1, 3),
        generation=st.integers(0, 2),
        fingerprint=st.sampled_from([b"x", b"y"]),
    )
    def deliver(self, owner: str, attempt: int, generation: int, fingerprint: bytes) -> None:
        assume(owner not in self.runs)  # deliveries of a key take turns in a process
        request = ClaimRequest(
            "mail.send",
            "order-7",
            fingerprint,
            owner,
            lease=100,
            crash_limit=3,
            attempt=attempt,
            generation=generation,
        )
        answer, claimed = decide(self.row, request, self.now)
        if isinstance(answer, Run | Spent):
            assert self.result is None, "a succeeded job ran again"
            assert not self.live_runs(), "two runs at a time"
            self.tokens.append(answer.token)
            self.runs[owner] = answer.token
        self.row = claimed or self.row

    @precondition(lambda self: self.runs)
    @rule(
        data=st.data(),
        status=st.sampled_from([Status.SUCCEEDED, Status.RETRYING, Status.FAILED, Status.PENDING]),
    )
    def finish(self, data: st.DataObject, status: Status) -> None:
        owner = data.draw(st.sampled_from(sorted(self.runs)))
        token = self.runs.pop(owner)
        change = Change(
            Ref("mail.send", "order-7", token), status, result=str(token).encode(), fault=FAULT, due_at=self.now
        )
        says_so, changed = apply(self.row, change, self.now)
        if changed is not None:
            assert token == self.tokens[-1], "a stale run wrote"
        if says_so and status is Status.SUCCEEDED:
            assert self.result is None
            self.result = change.result
        self.row = changed or self.row

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        self.runs.pop(data.draw(st.sampled_from(sorted(self.runs))))

    @rule(milliseconds=st.sampled_from([1, 50, 100]))
    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds

    def live_runs(self) -> list[str]:
        """Runs that still hold the row: those of a token that moved on can write nothing."""
        row = self.row
        if row is None or row.status is not Status.PROCESSING or (row.lease_until or 0) <= self.now:
            return []
        return [owner for owner, token in self.runs.items() if token == row.token]

    @invariant()
    def tokens_only_grow(self) -> None:
        assert self.tokens == sorted(set(self.tokens))

    @invariant()
    def success_is_final(self) -> None:
        if self.result is not None:
            assert self.row is not None
            assert (self.row.status, self.row.result) == (Status.SUCCEEDED, self.result)

    @invariant()
    def history_is_bounded(self) -> None:
        assert self.row is None or len(self.row.history) <= HISTORY_LIMIT


TestLifeOfARow = LifeOfARow.TestCase
TestLifeOfARow.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
