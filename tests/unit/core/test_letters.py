"""What a dead letter says to people, whoever buried it."""

from dataclasses import replace

import pytest

from consumer.core.claim import Run
from consumer.core.delay import Ladder
from consumer.core.disposition import DeadLetter
from consumer.core.job import Fault, Job, Message
from consumer.core.letters import buried, group_of, id_for, letter_of
from consumer.core.parcels import HEADER_BUDGET, Copier
from consumer.core.topology import build
from consumer.core.verdict import Verdict
from schemas import headers
from schemas.codes import Code

TOPOLOGY = build("jobs", "default", Ladder("jobs"), 100)
NOW = 1_700_000_000_000
NAME = ("k", "a")
FAULT = Fault(Code.ATTEMPTS_EXHAUSTED, "app.Odd", "no luck with 17", "Traceback …")
JOB = Job("k", "a", b"{}", fingerprint=b"payload")
VERDICT = Verdict(DeadLetter(FAULT), "k", "a", JOB, Run(1, 3))
LETTER_ID = "0123456789abcdef0123"


def dead(message: Message = Message(b"{}"), fault: Fault = FAULT) -> Message:  # noqa: B008 - frozen
    return Copier(TOPOLOGY, "pod-1").dead(message, fault, 3, NOW, LETTER_ID, 2).message


def half() -> float:
    return 0.5


def test_the_letter_of_a_copy_and_that_of_the_message_in_the_queue_are_the_same() -> None:
    letter = buried(dead(), TOPOLOGY, VERDICT, FAULT, NOW)
    assert letter == letter_of(dead(), TOPOLOGY, NAME, NOW + 999)
    assert (letter.id, letter.queue, letter.kind, letter.key) == (LETTER_ID, "default", "k", "a")
    assert (letter.code, letter.error_type, letter.error_message) == (
        "attempts_exhausted",
        "app.Odd",
        "no luck with 17",
    )
    assert (letter.attempts, letter.generation, letter.size, letter.dead_at) == (3, 2, 2, NOW)


def test_a_traceback_that_the_headers_have_no_room_for_is_in_the_letter() -> None:
    copy = dead(Message(b"{}", {"huge": "h" * (HEADER_BUDGET - 2_000)}), replace(FAULT, traceback="t" * 8_000))
    assert headers.ERROR_TRACEBACK not in copy.headers
    assert buried(copy, TOPOLOGY, VERDICT, replace(FAULT, traceback="t" * 8_000), NOW).error_traceback == "t" * 8_000


def test_the_first_and_the_last_failure_are_told() -> None:
    message = Message(b"{}", {headers.FIRST_FAILED: NOW - 5_000, headers.HISTORY: f'[{{"at": {NOW - 9}}}]'})
    letter = letter_of(message, TOPOLOGY, NAME, NOW)
    assert (letter.first_failed_at, letter.last_failed_at, letter.dead_at) == (NOW - 5_000, NOW - 9, NOW)


@pytest.mark.parametrize("nonsense", ["[", "{}", "[]", '[{"at": "x"}]', 7, b"\xff", [1]])
def test_headers_that_anybody_wrote_do_no_harm(nonsense: object) -> None:
    names = (headers.HISTORY, headers.FIRST_FAILED, headers.ATTEMPT, headers.GENERATION, headers.ERROR_TYPE, "x-death")
    letter = letter_of(Message(b"", dict.fromkeys((*names, headers.DEAD_ID), nonsense)), TOPOLOGY, (None, None), NOW)
    assert (letter.dead_at, letter.last_failed_at) == (NOW, NOW)


def test_a_run_that_is_buried_twice_is_one_letter_and_its_next_generation_another() -> None:
    first = id_for(VERDICT, half)
    assert first == id_for(replace(VERDICT, claim=Run(9, 1)), half)
    assert first != id_for(replace(VERDICT, claim=Run(1, 3, generation=1)), half)
    assert first != id_for(replace(VERDICT, job=replace(JOB, fingerprint=b"corrected")), half)


def test_a_message_that_was_refused_without_a_run_is_a_letter_of_its_own() -> None:
    chances = iter([0.1, 0.2, 0.3, 0.4])
    refused = Verdict(DeadLetter(FAULT), "k", "a", JOB)
    one, other = (id_for(refused, lambda: next(chances)) for _ in range(2))
    assert one != other
    assert {len(one), len(other)} == {20}


def test_what_the_broker_gave_up_has_an_id_that_looking_at_it_does_not_change() -> None:
    message = Message(b"x", {"x-death": [{"reason": "delivery_limit"}], "x-delivery-count": 3}, message_id="m")
    again = replace(message, headers=message.headers | {"x-delivery-count": 4, "x-acquired-count": 9})
    ids = [letter_of(found, TOPOLOGY, NAME, NOW).id for found in (message, again, replace(message, body=b"y"))]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no user 17", "no user 4,711.5"),
        ("row 7e0c9f6a-2b1d-4c3e-8f00-aabbccddeeff is gone", "row 00000000-2B1D-4c3e-8f00-aabbccddeeff is gone"),
        ("object at 0x7f3a", "object at 0xdeadbeef"),
        ("can't open 'a b'", "can't open 'c'"),
        ('no "x" in `y`', 'no "z" in `0`'),
        ("commit deadbeef1 failed", "commit 0badf00d failed"),
    ],
)
def test_errors_that_differ_in_what_is_particular_to_a_job_are_one_group(one: str, other: str) -> None:
    assert group_of("rejected", "E", one) == group_of("rejected", "E", other)


@pytest.mark.parametrize(
    ("one", "other"), [("no user", "no order"), ("can't open 'a'", "won't open 'a'"), ("facade", "decade")]
)
def test_errors_that_differ_in_words_are_not(one: str, other: str) -> None:
    assert group_of("rejected", "E", one) != group_of("rejected", "E", other)


def test_nor_are_those_of_another_type_or_code() -> None:
    assert len({group_of("rejected", "E", "x"), group_of("rejected", "F", "x"), group_of("expired", "E", "x")}) == 3


def test_text_that_a_database_refuses_is_shown_as_escapes() -> None:
    told = letter_of(dead(fault=replace(FAULT, message="a\x00b\ud800")), TOPOLOGY, NAME, NOW)
    assert told.error_message == "a\\x00b\\ud800"
