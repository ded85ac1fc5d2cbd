"""Letters that are named are looked for no longer than needed, and whoever ends early says how far it came."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest

from config.settings import Settings
from consumer.broker.depth import Depth
from consumer.core.decode import DecodeRules
from consumer.core.errors import BrokerUnavailable, StoreUnavailable, Unfinished
from consumer.core.job import Message
from consumer.core.letter_index import Wanted
from consumer.core.letters import Letter, State
from consumer.dead.desk import Desk, Removal
from consumer.dead.desk import desk as open_desk
from consumer.wiring import clock, topology_of
from schemas import headers

IDS = [f"{number:020x}" for number in range(5)]
DEFAULT = Wanted("default")


def letter(letter_id: str) -> Message:
    return Message(b"1", {headers.DEAD_ID: letter_id, headers.CODE: "rejected"}, type="echo", message_id=letter_id)


@dataclass
class Queue:
    """The dead-letter queue, as far as a desk asks it."""

    messages: list[Message] = field(default_factory=lambda: [letter(name) for name in IDS])
    taken: int = 0
    held: list[int] = field(default_factory=list)
    acked: list[int] = field(default_factory=list)

    async def depth(self) -> Depth:
        return Depth(len(self.messages), 0)

    async def take(self) -> tuple[int, Message] | None:
        self.taken += 1
        return self.taken, self.messages[self.taken - 1]

    def hold(self, tag: int) -> None:
        self.held.append(tag)

    def ack(self, tag: int) -> None:
        self.acked.append(tag)


class Index:
    """Knows them all."""

    async def mark(self, ids: Collection[str], *_: object) -> frozenset[str]:
        return frozenset(ids)


class Away:
    async def mark(self, *_: object) -> frozenset[str]:
        raise StoreUnavailable("the store is away")


def desk(queue: Queue, index: Index | Away | None = None) -> Desk:
    return Desk(queue, index or Index(), topology_of(Settings()), DecodeRules(), asyncio.Event())  # type: ignore[arg-type]


async def fine(_: Letter) -> None: ...


def removal(at: Desk) -> Removal:
    return Removal(at, State.REDRIVEN, fine)


async def test_no_letter_behind_the_last_that_was_named_is_touched() -> None:
    queue = Queue()
    await removal(desk(queue)).take(replace(DEFAULT, ids=frozenset({IDS[0], IDS[2]})))
    assert (queue.taken, queue.acked, queue.held) == (3, [1, 3], [2])


async def test_a_letter_that_does_not_say_when_it_died_is_taken_with_what_died_before_now() -> None:
    queue = Queue(messages=[Message(b"put here by hand")])
    await removal(desk(queue)).take(replace(DEFAULT, until=clock()))
    assert queue.acked == [1]


async def test_a_named_letter_that_is_not_in_the_queue_is_told_beside_what_was_done() -> None:
    queue = Queue()
    with pytest.raises(Unfinished, match=r"letter f{20} is not in the queue now: .*; 1 letters were redriven, all"):
        await removal(desk(queue)).take(replace(DEFAULT, ids=frozenset({IDS[0], "f" * 20})))
    assert queue.taken == len(IDS)


async def test_an_index_that_is_away_does_not_hide_what_was_taken_out() -> None:
    with pytest.raises(Unfinished, match="the store is away; 5 letters were redriven, all others are in the queue"):
        await removal(desk(Queue(), Away())).take(DEFAULT)


async def test_a_fault_before_anything_was_done_is_told_as_it_is() -> None:
    async def fails(_: Letter) -> None:
        raise BrokerUnavailable("no queue takes it")

    queue = Queue()
    with pytest.raises(BrokerUnavailable, match=r"^no queue takes it$"):
        await Removal(desk(queue), State.EDITED, fails).take(DEFAULT)
    assert queue.acked == []


async def test_a_bug_in_what_is_done_with_a_letter_is_not_lost() -> None:
    async def fails(_: Letter) -> None:
        raise KeyError("of ours")

    queue = Queue()
    with pytest.raises(KeyError):
        await Removal(desk(queue), State.EDITED, fails).take(DEFAULT)
    assert queue.acked == []


async def test_an_interruption_says_whether_anything_was_changed() -> None:
    for queue, said in ((Queue(messages=[]), "interrupted: nothing was changed"), (Queue(), "interrupted; 5 letters")):
        at = desk(queue)
        at.interrupted.set()
        with pytest.raises(Unfinished, match=said):
            await removal(at).take(DEFAULT)


async def test_nothing_is_taken_in_hand_while_the_store_can_not_be_written_to() -> None:
    class Full:
        async def probe(self) -> None:
            raise StoreUnavailable("the store is read-only")

    with pytest.raises(StoreUnavailable, match="read-only"):
        async with open_desk(Settings(), Full()):  # type: ignore[arg-type]
            pass
