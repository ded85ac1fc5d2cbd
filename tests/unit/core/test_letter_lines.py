"""An exported letter is read again as it was, and an edited file is told by what is wrong with it."""

import json
from typing import Any

import pytest

from consumer.core.delay import Ladder
from consumer.core.exact import NotExact
from consumer.core.job import Message
from consumer.core.letter_lines import Exported, exported, line_of
from consumer.core.letters import letter_of
from consumer.core.topology import build

MESSAGE = Message(b"\xff\x00", {"theirs": b"\xe9", "consumer-code": "rejected"}, message_id="a", priority=3)
LETTER = letter_of(MESSAGE, build("jobs", "default", Ladder("jobs"), 100), ("k", "a\u2028"), 7)


def test_a_letter_is_one_line_in_ascii_and_is_read_as_it_was() -> None:
    line = line_of(LETTER)
    assert line.isascii()
    assert "\n" not in line
    assert exported(line) == Exported(LETTER.id, "default", "rejected", 7, MESSAGE)


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"id": "../../x"}, "id is not one of a dead letter"),
        ({"queue": None}, "queue is not of type str"),
        ({"dead_at": "7"}, "dead_at is not of type int"),
        ({"body": "x"}, "body is no"),
        ({"headers": 7}, "headers is no object"),
    ],
)
def test_a_line_that_was_changed_is_refused(change: dict[str, Any], wrong: str) -> None:
    with pytest.raises(NotExact, match=wrong):
        exported(json.dumps(json.loads(line_of(LETTER)) | change))


@pytest.mark.parametrize(
    ("line", "wrong"), [("", "not JSON"), ("{", "not JSON"), ("[]", "no object"), ("7", "no object")]
)
def test_a_line_that_is_none_is_refused(line: str, wrong: str) -> None:
    with pytest.raises(NotExact, match=wrong):
        exported(line)
