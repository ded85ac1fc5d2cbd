"""The index of dead letters, for all three stores: what is noted is found, by the words of `Wanted` alone."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from consumer.core.job import Message
from consumer.core.letter_index import Wanted
from consumer.core.letters import Entry, Letter, State
from tests.contract.stores import Subject

AT = 1_700_000_000_000
ALL = Wanted("default")
HEADERS = {"n": 1, "b": b"\xff\x00", "d": Decimal("1.10"), "t": {"deep": [datetime(2024, 1, 1, tzinfo=UTC), "\x00"]}}
MESSAGE = Message(b"\x00\xff not JSON", HEADERS, type="mail.send", message_id="a", priority=4)


def letter(number: int = 0, **facts: Any) -> Letter:
    plain: dict[str, Any] = {
        "id": f"{number:020x}",
        "queue": "default",
        "kind": "mail.send",
        "key": f"order-{number}",
        "code": "rejected",
        "error_type": "ValueError",
        "error_message": f"no address {number}",
        "group": "aaa",
        "dead_at": AT + number,
        "first_failed_at": AT - 9,
        "last_failed_at": AT - 1,
        "attempts": 3,
        "generation": 0,
        "size": len(MESSAGE.body),
        "state": State.DEAD,
        "state_at": AT,
        "error_traceback": "Traceback …",
        "message": MESSAGE,
    }
    return Letter(**plain | facts)


VARIED = [
    letter(0),
    letter(1, code="expired", kind=None, key=None, group="bbb"),
    letter(2, error_type="KeyError", group="bbb"),
    letter(3, generation=5),
    letter(4, queue="other"),
    letter(5, state=State.PURGED),
    letter(6, dead_at=AT),
    letter(7, code="", key="o'rder", group="ccc"),
]


async def ids(subject_store: Any, wanted: Wanted = ALL, *, oldest_first: bool = True) -> list[str]:
    return [entry.id for entry in await subject_store.letters.page(wanted, 100, after=None, oldest_first=oldest_first)]


async def test_a_letter_is_found_whole_and_exactly_as_it_was_buried(subject: Subject) -> None:
    async with subject.store() as store:
        await store.bury(letter())
        assert await store.letters.letters([letter().id, "unknown"]) == [letter()]


async def test_burying_again_changes_nothing_and_a_newer_word_goes_before_an_older_one(subject: Subject) -> None:
    async with subject.store() as store:
        gone = replace(letter(), state=State.REDRIVEN, state_at=AT + 5)
        for word, stands in (
            (letter(), letter()),
            (letter(error_message="as new"), letter()),
            (gone, gone),
            (letter(), gone),
            (letter(state_at=AT + 9, attempts=7), letter(state_at=AT + 9, attempts=7)),
        ):
            await store.bury(word)
            assert await store.letters.letters([letter().id]) == [stands]


@pytest.mark.parametrize(
    "wanted",
    [
        ALL,
        Wanted("other"),
        Wanted("default", State.PURGED),
        replace(ALL, ids=frozenset({VARIED[2].id, VARIED[4].id, "unknown"})),
        replace(ALL, ids=frozenset()),
        replace(ALL, code="expired"),
        replace(ALL, code=""),
        replace(ALL, kind="mail.send", error_type="ValueError"),
        replace(ALL, key="o'rder"),
        replace(ALL, group="bbb"),
        replace(ALL, since=AT + 1, until=AT + 3),
        replace(ALL, redriven=4),
    ],
)
async def test_a_database_finds_what_the_words_of_the_filter_say(subject: Subject, wanted: Wanted) -> None:
    said = sorted((x for x in VARIED if wanted.matches(x)), key=lambda x: (x.dead_at, x.id))
    async with subject.store() as store:
        for one in VARIED:
            await store.bury(one)
        assert await ids(store, wanted) == [x.id for x in said]
        assert await ids(store, wanted, oldest_first=False) == [x.id for x in reversed(said)]
        assert await store.letters.count(wanted) == len(said)
        assert sum(group.count for group in await store.letters.groups(wanted, 100)) == len(said)


@pytest.mark.parametrize("oldest_first", [True, False])
async def test_pages_follow_each_other_without_a_gap_or_a_repetition(subject: Subject, oldest_first: bool) -> None:
    async with subject.store() as store:
        for number in range(11):
            await store.bury(letter(number, dead_at=AT + number // 4))
        seen: list[Entry] = []
        while page := await store.letters.page(ALL, 3, after=seen[-1].id if seen else None, oldest_first=oldest_first):
            assert len(page) <= 3
            seen += page
        assert len(seen) == 11
        places = [(entry.dead_at, entry.id) for entry in seen]
        assert all((one < next_one) is oldest_first for one, next_one in pairwise(places))


async def test_a_list_carries_what_an_entry_is_and_nothing_more(subject: Subject) -> None:
    async with subject.store() as store:
        await store.bury(letter())
        [entry] = await store.letters.page(ALL, 1, after=None, oldest_first=True)
        assert type(entry) is Entry
        assert entry == Entry(**{name: getattr(letter(), name) for name in Entry.__dataclass_fields__})


async def test_groups_have_counts_first_and_last_death_and_the_newest_as_their_example(subject: Subject) -> None:
    async with subject.store() as store:
        for number in range(6):
            await store.bury(letter(number, group="many" if number % 3 else "few"))
        many, few = await store.letters.groups(ALL, 10)
        assert (many.count, many.first_at, many.last_at, many.example.id) == (4, AT + 1, AT + 5, letter(5).id)
        assert (few.count, few.first_at, few.last_at, few.example.error_message) == (2, AT, AT + 3, "no address 3")
        assert await store.letters.groups(ALL, 1) == [many]


async def test_what_became_of_letters_is_marked_and_the_unknown_are_told(subject: Subject) -> None:
    async with subject.store() as store:
        await store.bury(letter(1))
        await store.bury(letter(2))
        known = await store.letters.mark([letter(1).id, "unknown"], State.REDRIVEN, AT + 7)
        assert known == {letter(1).id}
        assert await ids(store) == [letter(2).id]
        [marked] = await store.letters.letters([letter(1).id])
        assert (marked.state, marked.state_at) == (State.REDRIVEN, AT + 7)


async def test_a_mark_of_a_clock_that_is_behind_counts_all_the_same(subject: Subject) -> None:
    async with subject.store() as store:
        await store.bury(letter(1))
        await store.letters.mark([letter(1).id], State.PURGED, AT - 60_000)
        await store.bury(letter(1))
        assert await ids(store) == []


async def test_letters_that_are_gone_are_forgotten_after_a_time_and_the_dead_never(subject: Subject) -> None:
    async with subject.store() as store:
        now = subject.now()
        await store.bury(letter(1, state_at=now - 100_000))
        for number, since in ((2, 90_000), (3, 80_000), (4, 10)):
            await store.bury(letter(number, state=State.PURGED, state_at=now - since))
        assert await store.letters.prune(60_000, 1) == 1
        assert await store.letters.prune(60_000, 100) == 1
        assert await store.letters.prune(60_000, 100) == 0
        assert {x.id for x in await store.letters.letters([letter(n).id for n in range(5)])} == {
            letter(1).id,
            letter(4).id,
        }


async def test_text_that_no_database_takes_as_it_is_is_buried_in_the_exact_form(subject: Subject) -> None:
    odd = replace(MESSAGE, headers={"nul\x00": "\x00", "half": "\ud800"}, correlation_id="\x00\udfff")
    async with subject.store() as store:
        await store.bury(letter(message=odd))
        [found] = await store.letters.letters([letter().id])
        assert found.message == odd


async def test_a_letter_that_the_database_refuses_stops_nobody(subject: Subject) -> None:
    """Its own facts are made plain before; but whatever slips through must not hold up the burials beside it."""
    async with subject.store() as store:
        await store.bury(letter(1, error_message="\ud800"))
        await store.bury(letter(2))
        assert letter(2).id in await ids(store)
