import struct
from typing import Any

import pytest

from consumer.core.job import Job
from consumer.core.outcome import Failed, Interrupted, TimedOut
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.run import Run, failure, how_it_ended, ticket
from consumer.worker.wire import TICKET_LIMIT, Type, whole


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exited with code 0"),
        (3 << 8, "exited with code 3"),
        (9, "was killed by SIGKILL"),
        (11 | 128, "was killed by SIGSEGV"),
        (40, "was killed by signal 40"),
    ],
)
def test_a_wait_status_is_told_in_words(status: int, words: str) -> None:
    assert how_it_ended(status) == words


def a_run(body: bytes) -> Run:
    return Run(5, Work(Job("kind", "key", body), 2, 3.0), Sort.CPU, lambda: None)


async def test_a_short_body_travels_on_the_ticket_and_a_long_one_beside_it() -> None:
    packet, rest = ticket(a_run(b"[1]"))
    assert (whole(packet).type, whole(packet).body, rest) == (Type.JOB, b"[1]", b"")
    long = b'"' + b"x" * TICKET_LIMIT + b'"'
    packet, rest = ticket(a_run(long))
    assert (whole(packet).type, whole(packet).body) == (Type.LONG_JOB, b"")
    assert len(packet) < TICKET_LIMIT
    assert rest.endswith(long)


async def test_the_first_outcome_counts_and_the_place_is_freed_once() -> None:
    freed: list[int] = []
    run = Run(1, Work(Job("kind", "key", b""), 1, 1.0), Sort.CPU, lambda: freed.append(1))
    run.settle(Interrupted("first"))
    run.settle(Interrupted("second"))
    assert run.outcome.result() == Interrupted("first")
    assert freed == [1]


def test_an_overrun_that_a_child_reports_is_a_timeout() -> None:
    said = {"code": "execution_timeout", "type": "JobTimeout", "message": "", "traceback": "", "types": []}
    assert isinstance(failure(said | {"usage": [1, 2, 0.5, 3]}), TimedOut)


@pytest.mark.parametrize(
    "forged",
    [
        [],
        {"code": "nonsense"},
        {"usage": [1, 2, 0.5]},
        {"usage": [1, 2, "0.5", 3]},
        {"usage": [1, 10**30, 0.5, 3]},
        {"message": None},
    ],
)
def test_what_a_job_wrote_itself_is_no_failure_of_it(forged: Any) -> None:
    said: dict[str, Any] = {"code": "rejected", "type": "E", "message": "", "traceback": "", "types": []}
    said["usage"] = [1, 2, 0.5, 3]
    assert isinstance(failure(said), Failed)
    with pytest.raises((ValueError, KeyError, TypeError, struct.error)):
        failure(forged and said | forged)


@pytest.mark.parametrize(("perhaps_outside", "ends"), [(False, 2), (True, 4)])
async def test_a_run_that_was_there_at_one_end_after_the_other_is_tried_alone(
    perhaps_outside: bool,
    ends: int,
) -> None:
    run = a_run(b"")
    for _ in range(ends):
        assert not run.suspect
        run.was_there(perhaps_outside=perhaps_outside)
    assert run.suspect
