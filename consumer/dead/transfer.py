"""Exported letters back into the dead-letter queue and its index, under the ids that they had."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace

from config.settings import Settings
from consumer.broker.publisher import AmqpPublisher, is_writable
from consumer.core.decode import decode
from consumer.core.errors import SettingsError, Unavailable, Unfinished
from consumer.core.exact import NotExact
from consumer.core.letter_index import LetterIndex
from consumer.core.letter_lines import Exported, exported
from consumer.core.letters import letter_of
from consumer.core.parcels import Copier
from consumer.core.ports import Parcel
from consumer.dead.batches import batches
from consumer.dead.looks import listed
from consumer.operations import closing_store, publishing
from consumer.wiring import clock, rules_of, topology_of

PURPOSE = "import"


@dataclass(frozen=True, slots=True)
class Imported:
    """`known`: letters that are in the queue already, which are left as they are."""

    added: int
    known: int


def check(settings: Settings, name: str, lines: Iterable[str]) -> None:
    """Raise SettingsError for the first line that can't be imported."""
    topology = topology_of(settings)
    copier = Copier(topology, PURPOSE)
    for number, line in enumerate(lines, 1):
        try:
            letter = exported(line)
        except NotExact as error:
            raise SettingsError(f"{name}, line {number} is no exported letter: {error}; nothing was imported") from None
        if letter.queue != topology.queue:
            raise SettingsError(
                f"{name}, line {number} is a letter of queue '{letter.queue}', and this is '{topology.queue}': "
                "nothing was imported"
            )
        if not is_writable(_parcel(copier, letter).message):
            raise SettingsError(
                f"{name}, line {number} has a header or a property that can't be sent to a broker: nothing was imported"
            )


async def bring_back(settings: Settings, lines: Iterable[str]) -> Imported:
    """Lines that were checked. Each letter is confirmed, and then in the index: a second import adds none of them."""
    counts = Imported(0, 0)
    async with closing_store(settings) as store, publishing(settings) as publisher:
        await store.probe()  # a letter that the index can't be told of would be imported again
        desk = Incoming(settings, store.letters, publisher)
        try:
            for batch in batches(map(exported, lines), lambda letter: len(letter.message.body)):
                added = await desk.add({letter.id: letter for letter in batch})
                counts = Imported(counts.added + added, counts.known + len(batch) - added)
        except Unavailable as error:
            raise Unfinished(f"{error}; import the file again, those that are in the queue by now stay one") from None
    return counts


class Incoming:
    def __init__(self, settings: Settings, index: LetterIndex, publisher: AmqpPublisher) -> None:
        self._topology = topology_of(settings)
        self._copier = Copier(self._topology, PURPOSE)
        self._rules = rules_of(settings, "").decode
        self._index = index
        self._publisher = publisher

    async def add(self, batch: dict[str, Exported]) -> int:
        known = await listed(self._index, self._topology.queue, batch)
        new = [letter for letter in batch.values() if letter.id not in known]
        await asyncio.gather(*map(self._add, new))
        return len(new)

    async def _add(self, letter: Exported) -> None:
        parcel = _parcel(self._copier, letter)
        await self._publisher.publish(parcel)
        job = decode(parcel.message, self._rules)
        noted = letter_of(parcel.message, self._topology, (job.kind, job.key), clock())
        await self._index.bury(replace(noted, state_at=clock()))


def _parcel(copier: Copier, letter: Exported) -> Parcel:
    return copier.back(letter.message, letter.id, letter.code, letter.dead_at)
