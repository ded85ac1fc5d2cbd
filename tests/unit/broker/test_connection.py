"""What the client does that nobody could wait for or read, as one sentence after a bounded time."""

import asyncio
from typing import Any

import pytest

from consumer.broker import connection
from consumer.broker.connection import explained, open_channel
from consumer.core.errors import BrokerUnavailable, TopologyError


class Blocked:
    """A connection that the broker holds back, and its channel: the client waits for the end of that, without limit."""

    def channel(self, **_: Any) -> "Blocked":
        return self

    async def initialize(self) -> None:
        await asyncio.Event().wait()


async def waiting_for_ever() -> None:
    with explained("reading failed"):
        await asyncio.Event().wait()


async def test_a_channel_that_the_broker_does_not_open_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER", 0.01)
    blocked: Any = Blocked()
    silent = r"^reading failed: it did not answer in time$"
    with pytest.raises(BrokerUnavailable, match=silent), explained("reading failed"):
        await open_channel(blocked)


async def test_a_call_that_the_client_gave_up_is_no_cancellation_of_ours() -> None:
    with pytest.raises(BrokerUnavailable, match=r"^reading failed: CancelledError$"), explained("reading failed"):
        raise asyncio.CancelledError


async def test_a_connection_that_was_closed_for_no_reason_that_the_client_names_is_away_like_any_other() -> None:
    closed = r"^reading failed: the connection was closed$"
    with pytest.raises(BrokerUnavailable, match=closed), explained("reading failed"):
        raise Exception  # noqa: TRY002 - the client's own


async def test_a_bug_of_ours_stays_one() -> None:
    with pytest.raises(KeyError), explained("reading failed"):
        raise KeyError("it")


async def test_our_own_cancellation_stays_one() -> None:
    task = asyncio.create_task(waiting_for_ever())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_what_has_its_sentence_already_keeps_it() -> None:
    with pytest.raises(TopologyError, match=r"^there is no queue$"), explained("reading failed"):
        raise TopologyError("there is no queue")
