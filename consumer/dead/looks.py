"""Looking at dead letters: the index is read, the queue is only asked how many it has."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass

from config.settings import Settings
from consumer.broker.connection import connect, open_channel
from consumer.broker.deadletters import DeadLetters
from consumer.core.errors import BrokerUnavailable, SettingsError, TopologyError
from consumer.core.letter_index import Group, LetterIndex, Wanted
from consumer.core.letters import Entry, Letter, State
from consumer.operations import closing_store
from consumer.wiring import broker_of, topology_of

EXPORTED_AT_ONCE = 50
"""Whole letters in memory."""


@dataclass(frozen=True, slots=True)
class Listed:
    """`count`: of all that are wanted; `difference`: what queue and index don't agree on, as a sentence."""

    entries: Sequence[Entry]
    groups: Sequence[Group]
    count: int
    difference: str


async def page(settings: Settings, wanted: Wanted, limit: int, after: str | None, *, oldest_first: bool) -> Listed:
    async with closing_store(settings) as store:
        await known(store.letters, [*(wanted.ids or ()), *([after] if after else ())])
        entries = await store.letters.page(wanted, limit, after=after, oldest_first=oldest_first)
        return Listed(entries, (), await store.letters.count(wanted), await _difference(settings, store.letters))


async def groups(settings: Settings, wanted: Wanted, limit: int) -> Listed:
    async with closing_store(settings) as store:
        await known(store.letters, wanted.ids or ())
        found = await store.letters.groups(wanted, limit)
        return Listed((), found, await store.letters.count(wanted), await _difference(settings, store.letters))


async def show(settings: Settings, letter_id: str) -> Letter:
    async with closing_store(settings) as store:
        [letter] = await known(store.letters, [letter_id])
    return letter


async def export(settings: Settings, wanted: Wanted) -> AsyncIterator[Letter]:
    """The oldest first, so that an import puts them back in their order."""
    after = None
    async with closing_store(settings) as store:
        await known(store.letters, wanted.ids or ())
        while found := await store.letters.page(wanted, EXPORTED_AT_ONCE, after=after, oldest_first=True):
            for letter in await store.letters.letters([entry.id for entry in found]):
                yield letter
            after = found[-1].id


async def known(index: LetterIndex, ids: Collection[str]) -> Sequence[Letter]:
    """Raise SettingsError where one of them isn't."""
    letters = await index.letters(ids)
    unknown = sorted(set(ids) - {letter.id for letter in letters})
    if unknown:
        raise SettingsError(
            f"there is no dead letter {unknown[0]}: 'consumer dead list' has those that the index knows, and "
            "'consumer dead index' takes up those that it doesn't"
        )
    return letters


async def check_dead(settings: Settings, ids: Collection[str]) -> None:
    async with closing_store(settings) as store:
        await dead(store.letters, ids)


async def dead(index: LetterIndex, ids: Collection[str]) -> Sequence[Letter]:
    """Likewise for those that are in the queue no more."""
    letters = await known(index, ids)
    for letter in letters:
        if letter.state is not State.DEAD:
            raise SettingsError(f"letter {letter.id} is {letter.state}: it is in the queue no more")
    return letters


async def _difference(settings: Settings, index: LetterIndex) -> str:
    topology = topology_of(settings)
    indexed = await index.count(Wanted(topology.queue))
    try:
        connection = await connect(broker_of(settings), "dead letters")
    except BrokerUnavailable as error:
        return f"the queue can't be asked: {error}"
    try:
        depth = await DeadLetters(await open_channel(connection), topology.dead_queue, 0).depth()
    except (BrokerUnavailable, TopologyError) as error:
        return f"the queue can't be asked: {error}"
    finally:
        await connection.hang_up()
    if depth.ready == indexed:
        return ""
    busy = f", while {depth.consumers} others have letters in hand" if depth.consumers else ""
    return (
        f"queue {topology.dead_queue} has {depth.ready} letters and the index {indexed}{busy}: "
        "'consumer dead index' compares them"
    )
