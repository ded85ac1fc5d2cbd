"""What is no exported letter is said before the first of a file is imported."""

import json
from typing import Any

import pytest

from config.settings import load
from consumer.core.errors import SettingsError
from consumer.core.exact import tagged_bytes
from consumer.dead.transfer import check

LETTER: dict[str, Any] = {
    "id": "0" * 20,
    "queue": "default",
    "code": "rejected",
    "dead_at": 1,
    "headers": {},
    "properties": {},
    "body": tagged_bytes(b"{}"),
}


def checked(*letters: dict[str, Any]) -> None:
    check(load(), "letters.jsonl", [json.dumps(LETTER | letter) for letter in letters])


def test_letters_of_this_queue_can_be_imported() -> None:
    checked({}, {"properties": {"type": "echo"}})


@pytest.mark.parametrize(
    ("letter", "words"),
    [
        ({"id": 1}, "line 2 is no exported letter: id"),
        ({"queue": "other"}, "line 2 is a letter of queue 'other', and this is 'default'"),
        ({"properties": {"priority": 256}}, "line 2 has a header or a property"),
        ({"properties": {"timestamp_ms": 10**20}}, "line 2 has a header or a property"),
        ({"code": "c" * 200_000}, "line 2 has a header or a property"),
    ],
)
def test_a_line_that_can_not_be_imported_is_named(letter: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=f"^letters.jsonl, {words}.*nothing was imported$"):
        checked({}, letter)
