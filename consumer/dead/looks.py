"""Looking at dead letters: the index is read, the queue is only asked how many it has."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace

from config.settings import Settings
from consumer.broker.deadletters import dead_letters
from consumer.core.errors import BrokerUnavailable, SettingsError, TopologyError
from consumer.core.letter_index import Group, LetterIndex, Wanted
from consumer.core.letters import ID, Entry, Letter, State
from consumer.dead.batches import batches
from consumer.operations import closing_store
from consumer.wiring import broker_of, topology_of

LISTED_AT_ONCE = 500
PATIENCE = 2.0
"""Seconds until the broker lets us in: what is listed doesn't need it."""
NAMED = 40
"""Characters of what may be anything."""


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
        while found := await store.letters.page(wanted, LISTED_AT_ONCE, after=after, oldest_first=True):
            for batch in batches(found, lambda entry: entry.size):
                for letter in await store.letters.letters([entry.id for entry in batch]):
                    yield letter
            after = found[-1].id


async def listed(index: LetterIndex, queue: str, ids: Collection[str]) -> frozenset[str]:
    """Those of these that are dead, as far as the index knows."""
    wanted = Wanted(queue, ids=frozenset(ids))
    return frozenset(entry.id for entry in await index.page(wanted, len(ids), after=None, oldest_first=True))


async def known(index: LetterIndex, ids: Collection[str]) -> Sequence[Letter]:
    """Raise SettingsError where one of them isn't."""
    letters = await index.letters([name for name in ids if ID.fullmatch(name)])
    unknown = sorted(set(ids) - {letter.id for letter in letters})
    if unknown:
        raise SettingsError(
            f"there is no dead letter {unknown[0][:NAMED]!a}: 'consumer dead list' has those that the index knows, "
            "and 'consumer dead index' takes up those that it doesn't"
        )
    return letters


async def check_dead(settings: Settings, ids: Collection[str]) -> None:
    async with closing_store(settings) as store:
        await dead(store.letters, settings.queue, ids)


async def dead(index: LetterIndex, queue: str, ids: Collection[str]) -> Sequence[Letter]:
    """Likewise for those that are of another queue, or in the queue no more."""
    letters = await known(index, ids)
    for letter in letters:
        if letter.queue != queue:
            raise SettingsError(f"letter {letter.id} is one of queue '{letter.queue}', and this is '{queue}'")
        if letter.state is not State.DEAD:
            raise SettingsError(f"letter {letter.id} is {letter.state}: it is in the queue no more")
    return letters


async def _difference(settings: Settings, index: LetterIndex) -> str:
    topology = topology_of(settings)
    indexed = await index.count(Wanted(topology.queue))
    try:
        async with dead_letters(replace(broker_of(settings), connect_timeout=PATIENCE), topology.dead_queue) as queue:
            depth = await queue.depth()
    except (BrokerUnavailable, TopologyError) as error:
        return f"the queue can't be asked: {error}"
    if depth.ready == indexed:
        return ""
    busy = f", while {depth.consumers} others have letters in hand" if depth.consumers else ""
    return (
        f"queue {topology.dead_queue} has {depth.ready} letters and the index {indexed}{busy}: "
        "'consumer dead index' compares them"
    )
