import json
from typing import Any

import pytest
from pydantic import BaseModel

from config.settings import LONGEST
from consumer.core import decode
from consumer.core.outbox import FollowUp
from consumer.worker.follow_ups import MAX_BYTES, MAX_KEY, MAX_KIND, MAX_QUEUE, MOST, FollowUps, decoded
from tests.support.stages import context


def sent(parent: tuple[str, str] = ("kind", "key"), /, **follow_up: Any) -> tuple[FollowUp, ...]:
    about = context(*parent)
    about.send(**{"kind": "next", "payload": None} | follow_up)
    assert about.follow_ups is not None
    return decoded(about.follow_ups.encoded())


def test_a_follow_up_crosses_as_it_was_asked_for() -> None:
    assert sent(payload={"ä": [1, "\0"]}, key="k", delay=1.5, queue="other.queue") == (
        FollowUp("next", "k", b'{"\xc3\xa4":[1,"\\u0000"]}', "other.queue", 1500),
    )


@pytest.mark.parametrize("forged", [b"", b"[1]", b'[["kind", "key", 1, null, 0]]', b'[["", "key", "1", null, 0]]'])
def test_what_a_job_wrote_itself_is_no_follow_up(forged: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        decoded(forged)


def test_a_model_is_a_payload() -> None:
    class Order(BaseModel):
        number: int

    assert sent(payload=Order(number=7))[0].payload == b'{"number":7}'


def test_a_second_run_asks_for_the_same_keys() -> None:
    def keys() -> list[str]:
        about = context("order.take", "17")
        for kind in ("mail.send", "mail.send", "order.ship"):
            about.send(kind, None)
        assert about.follow_ups is not None
        return [each.key for each in decoded(about.follow_ups.encoded())]

    assert keys() == keys() == ["order.take/17/1", "order.take/17/2", "order.take/17/3"]


def test_a_key_made_of_a_long_one_is_as_long_as_a_key_may_be() -> None:
    (first,) = sent(("x" * 20, "y" * 400))
    (follow_up,) = sent(("x" * MAX_KIND, "y" * MAX_KEY))
    assert first.key.endswith("y/1")
    assert len(follow_up.key) == 64
    assert sent(("x" * MAX_KIND, "y" * MAX_KEY)) == (follow_up,)


def test_names_have_the_limits_that_the_daemon_goes_by() -> None:
    assert (MAX_KIND, MAX_KEY) == (decode.MAX_KIND, decode.MAX_KEY)
    assert MAX_QUEUE == LONGEST


@pytest.mark.parametrize(
    ("follow_up", "sentence"),
    [
        ({"kind": ""}, "the kind of a follow-up is missing"),
        ({"kind": "x" * 201}, "the kind of a follow-up is longer than 200 characters"),
        ({"kind": "é" * 128}, "the kind of a follow-up has more than the 255 bytes of a property"),
        ({"kind": 7}, "the kind of a follow-up is not text"),
        ({"key": ""}, "the key of a follow-up is missing"),
        ({"key": "x" * 501}, "the key of a follow-up is longer than 500 characters"),
        ({"key": "a\0b"}, "the key of a follow-up holds a control character"),
        ({"queue": ""}, "the queue of a follow-up is the short name of a work queue"),
        ({"queue": ".".join(["x" * 50] * 5)}, "the queue of a follow-up is the short name of a work queue"),
        ({"queue": "a b"}, "the queue of a follow-up is the short name of a work queue"),
        ({"delay": -1}, "a follow-up waits for 0 to"),
        ({"delay": float("nan")}, "a follow-up waits for 0 to"),
        ({"delay": float("inf")}, "a follow-up waits for 0 to"),
        ({"delay": "soon"}, "a follow-up waits for 0 to"),
        ({"payload": {1, 2}}, r"the payload of a follow-up isn't JSON \(TypeError\)"),
        ({"payload": float("nan")}, r"the payload of a follow-up isn't JSON \(ValueError\)"),
        ({"payload": "\ud83d"}, r"the payload of a follow-up isn't JSON \(UnicodeEncodeError\)"),
        ({"payload": json.loads("[" * 101 + "]" * 101)}, "nested deeper than 100 levels"),
        ({"payload": 10**1001}, "an integer has more than 1000 digits"),
        ({"payload": "x" * MAX_BYTES}, "the payloads of a job's follow-ups have 1048578 bytes, and may have 1048576"),
    ],
)
def test_what_can_not_be_sent_is_the_handlers_error(follow_up: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        sent(**{"key": "k"} | follow_up)


def test_a_key_is_given_once() -> None:
    follow_ups = FollowUps("kind", "key")
    follow_ups.add("next", 1, "k", 0, None)
    follow_ups.add("another", 1, "k", 0, None)
    with pytest.raises(ValueError, match="the follow-up of kind 'next' and key 'k' was asked for before"):
        follow_ups.add("next", 2, "k", 0, None)


def test_a_job_can_not_ask_for_itself_which_is_done_by_then() -> None:
    follow_ups = FollowUps("poll", "a")
    with pytest.raises(ValueError, match="a job can't ask for itself: its own kind and key are done by then"):
        follow_ups.add("poll", 1, "a", 60, None)
    follow_ups.add("poll", 1, None, 60, None)
    follow_ups.add("poll", 1, "a", 60, "another_queue")


def test_there_are_only_so_many() -> None:
    follow_ups = FollowUps("kind", "key")
    for _ in range(MOST):
        follow_ups.add("next", None, None, 0, None)
    with pytest.raises(ValueError, match="a job may ask for 1000 follow-ups"):
        follow_ups.add("next", None, None, 0, None)
    assert len(decoded(follow_ups.encoded())) == MOST


def test_a_refused_one_leaves_no_trace() -> None:
    follow_ups = FollowUps("kind", "key")
    with pytest.raises(ValueError, match="JSON"):
        follow_ups.add("next", {1}, "k", 0, None)
    follow_ups.add("next", 1, "k", 0, None)
    assert [each.payload for each in decoded(follow_ups.encoded())] == [b"1"]
