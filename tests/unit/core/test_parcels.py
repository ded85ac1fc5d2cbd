"""Copies: what they keep, what they leave out, and that they fit into a frame."""

import json
from dataclasses import replace

import pytest

from consumer.core.delay import Ladder
from consumer.core.disposition import Defer, Retry
from consumer.core.job import Fault, Job, Message
from consumer.core.parcels import HEADER_BUDGET, Copier
from consumer.core.topology import build
from schemas import headers
from schemas.codes import Code

COPIER = Copier(build("jobs", "default", Ladder("jobs"), 100), "pod-1")
FAULT = Fault(Code.ATTEMPTS_EXHAUSTED, "app.Odd", "no luck", "Traceback …")
MESSAGE = Message(
    b"\xff not json",
    {"x-death": [{"count": 3}], "x-first-death-queue": "q", "tenant": "t1", "x-mine": 1},
    content_type="application/json",
    type="k",
    message_id="id-1",
    priority=3,
    user_id="producer",
    expiration="1000",
)
JOB = Job("k", "id-1", MESSAGE.body)
NOW = 1_700_000_000_000


def test_a_retry_copy_keeps_body_and_properties_and_says_which_attempt_it_is_for() -> None:
    copy = COPIER.retry(MESSAGE, JOB, 1, Retry(2, NOW + 5000, "x", FAULT), NOW).message
    assert (copy.body, copy.type, copy.message_id, copy.priority) == (b"\xff not json", "k", "id-1", 3)
    assert copy.headers[headers.ATTEMPT] == 2
    assert copy.headers[headers.DUE] == NOW + 5000
    assert copy.headers["tenant"] == "t1"


def test_a_copy_carries_nothing_that_a_broker_wrote_and_nothing_that_would_stop_it() -> None:
    copy = COPIER.retry(MESSAGE, JOB, 1, Retry(2, NOW + 5000, "x", FAULT), NOW).message
    assert not [name for name in copy.headers if name.startswith(("x-death", "x-first-death"))]
    assert copy.headers["x-mine"] == 1
    assert copy.expiration is None
    assert copy.user_id is None


def test_a_dead_letter_tells_what_happened_and_where_it_came_from() -> None:
    parcel = COPIER.dead(MESSAGE, FAULT, 3, NOW, "1d")
    assert (parcel.exchange, parcel.routing_key) == ("jobs.dlx", "default")
    told = parcel.message.headers
    assert (told[headers.CODE], told[headers.DEAD_ID]) == ("attempts_exhausted", "1d")
    assert told[headers.ERROR_TYPE] == "app.Odd"
    assert told[headers.ORIGIN] == "jobs.default"
    assert headers.DUE not in told


def test_the_history_grows_by_one_line_a_failure_and_is_bounded() -> None:
    message = MESSAGE
    for attempt in range(1, 40):
        message = COPIER.retry(message, JOB, attempt, Retry(attempt + 1, NOW, "x", FAULT), NOW + attempt).message
    history = json.loads(message.headers[headers.HISTORY])
    assert [line["attempt"] for line in history] == list(range(20, 40))
    assert message.headers[headers.FIRST_FAILED] == NOW + 1


def test_a_history_header_that_somebody_else_wrote_does_no_harm() -> None:
    for nonsense in ("{", "5", 7, None, b"\xff", "[" * 100_000):
        message = Message(b"1", {headers.HISTORY: nonsense})
        copy = COPIER.dead(message, FAULT, 1, NOW, "1d").message
        assert len(json.loads(copy.headers[headers.HISTORY])) == 1


def test_of_headers_that_would_not_fit_into_a_frame_as_many_as_can_are_kept_and_the_others_named() -> None:
    big = Message(b"1", {"small": "s", "huge": "h" * HEADER_BUDGET})
    copy = COPIER.dead(big, Fault(Code.REJECTED, "E", "m", "t" * 8000), 1, NOW, "1d").message
    assert copy.headers[headers.DROPPED] == "huge"
    assert {"small", headers.CODE, headers.HISTORY, headers.ERROR_TRACEBACK} <= copy.headers.keys()
    large = replace(big, headers={"small": "s", "large": "l" * (HEADER_BUDGET - 4000)})
    copy = COPIER.dead(large, Fault(Code.REJECTED, "E", "m", "t" * 8000), 1, NOW, "1d").message
    assert copy.headers[headers.DROPPED] == headers.ERROR_TRACEBACK


def test_a_deferred_copy_charges_nobody_and_remembers_since_when_its_kind_is_unknown() -> None:
    first = COPIER.defer(MESSAGE, JOB, Defer(NOW + 1000, "unknown_kind"), NOW).message
    again = COPIER.defer(first, JOB, Defer(NOW + 9000, "unknown_kind"), NOW + 1000).message
    assert not {headers.ATTEMPT, headers.SINCE} & again.headers.keys()
    assert again.headers[headers.UNKNOWN_SINCE] == NOW
    assert again.headers[headers.DUE] == NOW + 9000


@pytest.mark.parametrize("forged", [NOW + 10_000_000, -1, True, "x"])
def test_a_forged_time_since_which_its_kind_is_unknown_gives_no_endless_grace(forged: object) -> None:
    message = replace(MESSAGE, headers={headers.UNKNOWN_SINCE: forged})
    copy = COPIER.defer(message, JOB, Defer(NOW + 1000, "unknown_kind"), NOW).message
    assert copy.headers[headers.UNKNOWN_SINCE] == NOW


def test_a_kind_that_was_known_meanwhile_has_its_whole_grace_again() -> None:
    message = replace(MESSAGE, headers={headers.UNKNOWN_SINCE: NOW - 1000})
    copy = COPIER.retry(message, JOB, 1, Retry(2, NOW, "x", FAULT), NOW).message
    assert headers.UNKNOWN_SINCE not in copy.headers


def test_what_was_put_off_for_another_reason_has_its_whole_grace_when_its_kind_is_unknown() -> None:
    copy = COPIER.defer(MESSAGE, JOB, Defer(NOW + 1000, "not_due"), NOW).message
    assert headers.UNKNOWN_SINCE not in copy.headers


def test_copies_of_a_job_that_was_begun_say_when_and_its_redrive_forgets_it() -> None:
    begun = replace(JOB, since=NOW - 7)
    put_off = COPIER.defer(MESSAGE, begun, Defer(NOW, "cooling_down"), NOW).message
    again = COPIER.retry(MESSAGE, begun, 1, Retry(2, NOW, "x", FAULT), NOW).message
    assert put_off.headers[headers.SINCE] == again.headers[headers.SINCE] == NOW - 7
    letter = COPIER.dead(again, FAULT, 2, NOW, "1d").message
    assert headers.SINCE not in COPIER.redrive(letter).message.headers


def test_a_redriven_letter_starts_a_new_generation_and_keeps_its_history() -> None:
    letter = COPIER.dead(MESSAGE, FAULT, 3, NOW, "1d", generation=1).message
    parcel = COPIER.redrive(letter)
    told = parcel.message.headers
    assert (parcel.exchange, parcel.routing_key) == ("jobs", "default")
    assert told[headers.GENERATION] == 2
    assert headers.HISTORY in told
    assert not {headers.CODE, headers.ATTEMPT, headers.ERROR_MESSAGE, headers.DEAD_AT, headers.DEAD_ID} & told.keys()
    assert (parcel.message.body, parcel.message.message_id) == (MESSAGE.body, "id-1")


def test_a_stray_goes_to_its_work_queue_with_the_attempt_that_it_was_for() -> None:
    copy = COPIER.retry(MESSAGE, JOB, 1, Retry(2, NOW + 5000, "x", FAULT), NOW).message
    parcel = COPIER.home(replace(copy, headers={**copy.headers, "x-death": [{"count": 1}]}, expiration="5"))
    assert (parcel.exchange, parcel.routing_key) == ("jobs", "default")
    assert parcel.message == copy
