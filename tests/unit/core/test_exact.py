"""A message as text: whatever AMQP can hold comes back the same."""

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.core.exact import NotExact, checked, headers_text, message_of, properties_text, tagged_bytes
from consumer.core.job import Message

TIMES = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2262, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()
)
VALUES = st.recursive(
    SCALARS | st.decimals(allow_nan=False, allow_infinity=False) | TIMES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | st.just("$bytes"), inner, max_size=3)
    ),
    max_leaves=8,
)


def again(message: Message) -> Message:
    return message_of(message.body, headers_text(message), properties_text(message))


@given(st.dictionaries(st.text(), VALUES), st.binary())
def test_headers_of_every_type_survive(table: dict[str, Any], body: bytes) -> None:
    message = Message(body, table, message_id="id", priority=3, timestamp_ms=1_700_000_000_000)
    assert again(message) == message
    headers, properties = json.loads(headers_text(message)), json.loads(properties_text(message))
    assert checked(tagged_bytes(body), headers, properties) == message


def test_the_types_are_kept_and_not_only_their_values() -> None:
    table = {"a": Decimal("1.10"), "b": b"\xff\x00", "c": datetime(2024, 1, 2, tzinfo=UTC), "d": 1.0, "e": True, "f": 1}
    back = again(Message(b"", table)).headers
    assert [(type(item), str(item)) for item in back.values()] == [(type(item), str(item)) for item in table.values()]


def test_what_is_no_number_and_what_no_database_takes_survives_as_text_in_ascii() -> None:
    message = Message(b"", {"nan": math.nan, "nul": "\x00", "half": "\ud800"}, correlation_id="\x00")
    assert math.isnan(again(message).headers["nan"])
    assert again(message).headers["half"] == "\ud800"
    assert (headers_text(message) + properties_text(message)).isascii()
    assert "\x00" not in headers_text(message) + properties_text(message)


@pytest.mark.parametrize(
    ("body", "headers", "properties", "wrong"),
    [
        ("text", {}, {}, "body is no"),
        ({"$bytes": "%"}, {}, {}, "a tagged value can't be read"),
        ({"$bytes": ""}, {"a": {"$decimal": "x"}}, {}, "a tagged value can't be read"),
        ({"$bytes": ""}, {"a": {"$time": 7}}, {}, "a tagged value can't be read"),
        ({"$bytes": ""}, [], {}, "headers is no object"),
        ({"$bytes": ""}, {}, None, "properties is no object"),
        ({"$bytes": ""}, {}, {"body": "x"}, "properties has 'body', which is none"),
        ({"$bytes": ""}, {}, {"priority": True}, "properties.priority is not of type int"),
        ({"$bytes": ""}, {}, {"type": 7}, "properties.type is not of type str"),
    ],
)
def test_a_text_that_is_no_message_is_told_as_such(body: Any, headers: Any, properties: Any, wrong: str) -> None:
    with pytest.raises(NotExact, match=wrong):
        checked(body, headers, properties)
