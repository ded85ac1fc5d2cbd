"""What producers may have put into headers never stops a copy, nor do copies without an id wait for each other."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pamqp import decode, encode

from consumer.broker.publisher import AmqpPublisher, is_writable, properties_of
from consumer.core.errors import PublishFailed
from consumer.core.job import Message
from consumer.core.ports import Parcel
from schemas import headers


def written(value: Any) -> Any:
    """What somebody reads who gets the copy."""
    table = properties_of(Message(b"", {"theirs": value}, message_id="id")).headers
    assert table is not None
    return decode.field_table(encode.field_table(table))[1]["theirs"]


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, -(2**63), 2**63 - 1, "text", "", 0.5, Decimal("1.10"), datetime(2024, 1, 2, tzinfo=UTC)),
        *(bytearray(b"\xff\x00"), [1, ["x", None]], {"deep": {"er": [1.5]}}, {}),
    ],
)
def test_a_header_is_written_as_it_was(value: Any) -> None:
    assert written(value) == value
    assert type(written(value)) is type(value)


def test_text_that_is_not_utf_8_keeps_its_bytes() -> None:
    assert written(b"caf\xe9") == b"caf\xe9"
    assert written([{"deep": b"\xff"}]) == [{"deep": b"\xff"}]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.1, "1.1"), (1e300, "1e+300"), (1_700_000_000.25, "1700000000.25"), (2**63, str(2**63)), (object, str(object))],
)
def test_what_the_client_can_not_write_exactly_becomes_text(value: Any, text: str) -> None:
    assert written(value) == text


@pytest.mark.parametrize("message_id", [None, ""])
def test_the_id_that_the_client_makes_up_for_a_copy_without_one_is_marked_as_such(message_id: str | None) -> None:
    assert properties_of(Message(b"", message_id=message_id)).headers == {headers.ANONYMOUS: True}


@pytest.mark.parametrize(
    "message",
    [
        Message(b"", message_id="x" * 256),
        Message(b"", priority=256),
        Message(b"", timestamp_ms=10**18),
        Message(b"", type="\udcff"),
        Message(b"", {"theirs": "\udcff"}),
        Message(b"", {"theirs": Decimal("1e400")}),
        Message(b"", {"theirs": datetime(1, 1, 1, tzinfo=UTC)}),
    ],
    ids=["long", "priority", "time", "surrogate", "in a header", "decimal", "ancient"],
)
def test_a_message_that_nobody_could_have_sent_is_known_as_such(message: Message) -> None:
    assert not is_writable(message)


def test_a_message_with_everything_can_be_written() -> None:
    assert is_writable(Message(b"", {"theirs": [1.1, None, {"deep": b"\xff"}]}, type="echo", timestamp_ms=0))


class TwinChannel:
    """Confirms when it is told to."""

    def __init__(self) -> None:
        self.under_way = 0
        self.confirmed = asyncio.Event()

    async def basic_publish(self, *_: Any, **__: Any) -> None:
        self.under_way += 1
        await self.confirmed.wait()
        self.under_way -= 1


@pytest.mark.parametrize(("message_id", "together"), [("one", 1), (None, 3), ("", 3)])
async def test_only_copies_of_one_message_id_wait_for_each_other(message_id: str | None, together: int) -> None:
    channel: Any = TwinChannel()
    publisher = AmqpPublisher(10)
    publisher.attach(channel)
    copy = Parcel("jobs", "default", Message(b"", message_id=message_id), "retry")
    publishes = [asyncio.create_task(publisher.publish(copy)) for _ in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    assert channel.under_way == together
    channel.confirmed.set()
    await asyncio.gather(*publishes)


class ClosedChannel:
    async def basic_publish(self, *_: Any, **__: Any) -> None:
        raise Exception  # noqa: TRY002 - what the client raises where a connection was closed and nobody said why


async def test_a_publish_on_a_connection_that_was_closed_for_no_reason_has_failed() -> None:
    channel: Any = ClosedChannel()
    publisher = AmqpPublisher(10)
    publisher.attach(channel)
    with pytest.raises(PublishFailed, match="publishing to jobs failed: the connection was closed") as failure:
        await publisher.publish(Parcel("jobs", "default", Message(b"", message_id="one"), "retry"))
    assert failure.value.result == "error"
