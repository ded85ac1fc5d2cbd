import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from consumer.core.errors import StoreRefused, StoreUnavailable
from consumer.store.committer import QUIET, Committer


class Database:
    """Commits a batch when the test lets it, and remembers the batches."""

    def __init__(self, *, open_gate: bool = True) -> None:
        self.batches: list[list[str]] = []
        self.begun = asyncio.Semaphore(0)
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        if open_gate:
            self.gate.set()

    async def commit(self, items: Sequence[str]) -> list[str]:
        self.batches.append(list(items))
        self.begun.release()
        await self.gate.wait()
        if self.error:
            raise self.error
        if any("unfit" in item for item in items):
            raise StoreRefused("unfit data")
        return [item.upper() for item in items]


def committer(database: Database, limit: int = 256) -> Committer[str, str]:
    """Items are about the row that their first letter names."""
    return Committer(database.commit, lambda item: item[0], limit)


def together(submit: Callable[[str], Awaitable[str]], *items: str) -> list[asyncio.Task[str]]:
    async def one(item: str) -> str:
        return await submit(item)

    return [asyncio.create_task(one(item)) for item in items]


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def first_in_flight(database: Database, submit: Callable[[str], Awaitable[str]]) -> asyncio.Task[str]:
    (task,) = together(submit, "z")
    await database.begun.acquire()
    return task


async def test_an_item_that_finds_the_store_idle_goes_alone_and_at_once() -> None:
    database = Database()
    assert await committer(database).submit("a") == "A"
    assert database.batches == [["a"]]


async def test_what_keeps_coming_joins_a_batch_that_is_about_to_go_but_nobody_is_waited_for_long() -> None:
    database = Database()
    writes = committer(database)
    tasks = together(writes.submit, "a")
    for item in "bcd":
        await turns(QUIET)
        tasks += together(writes.submit, item)
    await turns(QUIET + 3)
    tasks += together(writes.submit, "z")
    await asyncio.gather(*tasks)
    assert database.batches == [["a", "b", "c", "d"], ["z"]]


async def test_what_arrives_during_one_batch_is_the_next_batch() -> None:
    database = Database(open_gate=False)
    writes = committer(database)
    tasks = [await first_in_flight(database, writes.submit), *together(writes.submit, "a", "b", "c")]
    database.gate.set()
    assert await asyncio.gather(*tasks) == ["Z", "A", "B", "C"]
    assert database.batches == [["z"], ["a", "b", "c"]]


async def test_a_batch_is_no_larger_than_its_limit() -> None:
    database = Database()
    writes = committer(database, limit=2)
    await asyncio.gather(*together(writes.submit, "a", "b", "c", "d", "e"))
    assert database.batches == [["a", "b"], ["c", "d"], ["e"]]


async def test_items_about_one_row_go_in_order_and_never_in_one_batch() -> None:
    database = Database()
    writes = committer(database)
    await asyncio.gather(*together(writes.submit, "a1", "b1", "a2", "c1", "a3", "b2"))
    assert database.batches == [["a1", "b1", "c1"], ["a2", "b2"], ["a3"]]


async def test_a_failed_batch_fails_each_of_its_callers_and_no_other() -> None:
    database = Database(open_gate=False)
    writes = committer(database)
    first = await first_in_flight(database, writes.submit)
    database.error = OSError("away")
    database.gate.set()
    with pytest.raises(StoreUnavailable, match="away"):
        await first
    failed = await asyncio.gather(*together(writes.submit, "a", "b"), return_exceptions=True)
    assert [type(error) for error in failed] == [StoreUnavailable, StoreUnavailable]
    assert failed[0] is not failed[1]
    database.error = None
    assert await writes.submit("c") == "C"


async def test_an_item_that_the_store_refuses_fails_alone_and_its_batch_goes_on() -> None:
    database = Database(open_gate=False)
    writes = committer(database)
    first = await first_in_flight(database, writes.submit)
    tasks = together(writes.submit, "a", "b", "c unfit", "d", "e", "f unfit", "g")
    database.gate.set()
    await first
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(answer) for answer in answers] == ["A", "B", "unfit data", "D", "E", "unfit data", "G"]
    assert [type(answers[place]) for place in (2, 5)] == [StoreRefused, StoreRefused]
    assert await writes.submit("h") == "H"


async def test_a_caller_that_gives_up_in_flight_leaves_its_batch_alone() -> None:
    database = Database(open_gate=False)
    writes = committer(database)
    tasks = [await first_in_flight(database, writes.submit), *together(writes.submit, "a")]
    tasks[0].cancel()
    database.gate.set()
    assert await tasks[1] == "A"
    assert database.batches == [["z"], ["a"]]


async def test_a_caller_that_gives_up_while_waiting_is_not_committed() -> None:
    database = Database(open_gate=False)
    writes = committer(database)
    first = await first_in_flight(database, writes.submit)
    quitter, stayer = together(writes.submit, "a", "b")
    await asyncio.sleep(0)
    quitter.cancel()
    await asyncio.gather(quitter, return_exceptions=True)
    database.gate.set()
    assert [await first, await stayer] == ["Z", "B"]
    assert database.batches == [["z"], ["b"]]


async def test_closing_answers_everything_that_was_taken_and_takes_nothing_more() -> None:
    database = Database(open_gate=False)
    writes = committer(database)
    tasks = [await first_in_flight(database, writes.submit), *together(writes.submit, "a", "b")]
    await asyncio.sleep(0)
    closing = asyncio.create_task(writes.close())
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable, match="closed"):
        await writes.submit("c")
    assert not closing.done()
    database.gate.set()
    await closing
    assert [task.result() for task in tasks] == ["Z", "A", "B"]
