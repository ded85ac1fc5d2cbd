"""The one look that touches the queue: every letter is taken in hand once, so that the index knows what is there."""

from dataclasses import dataclass, replace

from config.settings import Settings
from consumer.core.errors import Unfinished
from consumer.core.letter_index import LetterIndex, Wanted
from consumer.core.letters import Letter, State
from consumer.dead.desk import desk
from consumer.dead.looks import listed
from consumer.operations import closing_store
from consumer.wiring import clock

COMPARED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Compared:
    """Letters of the queue; those of them that the index didn't know; and entries whose letters are in no queue."""

    found: int
    added: int
    missing: int


async def reindex(settings: Settings) -> Compared:
    """Note what the index doesn't know, and mark what is in the queue no more."""
    began = clock()
    async with closing_store(settings) as store, desk(settings, store, unsaid=began) as at:
        if (await at.queue.depth()).consumers:
            raise Unfinished("somebody else has letters in hand now, such as a redrive: compare when that is over")
        comparison = Comparison(store.letters, at.topology.queue)
        async for tag, letter in at.letters():
            at.queue.hold(tag)
            await comparison.take(letter)
        await comparison.flush()
        if at.interrupted.is_set():
            raise Unfinished(f"interrupted: {len(comparison.seen)} letters were compared, the others were not")
        missing = await comparison.mark_missing(began)
    return Compared(len(comparison.seen), comparison.added, missing)


class Comparison:
    def __init__(self, index: LetterIndex, queue: str) -> None:
        self._index = index
        self._dead = Wanted(queue)
        self._batch: dict[str, Letter] = {}
        self.seen: set[str] = set()
        self.added = 0

    async def take(self, letter: Letter) -> None:
        self.seen.add(letter.id)
        self._batch[letter.id] = letter
        if len(self._batch) >= COMPARED_AT_ONCE:
            await self.flush()

    async def flush(self) -> None:
        batch, self._batch = self._batch, {}
        unknown = batch.keys() - await listed(self._index, self._dead.queue, batch)
        for letter_id in unknown:
            await self._index.bury(replace(batch[letter_id], state_at=clock()))
        self.added += len(unknown)

    async def mark_missing(self, began: int) -> int:
        """Of those that were dead before we began to look."""
        after, missing = None, 0
        while entries := await self._index.page(self._dead, COMPARED_AT_ONCE, after=after, oldest_first=True):
            after = entries[-1].id
            gone = [entry.id for entry in entries if entry.state_at < began and entry.id not in self.seen]
            missing += len(await self._index.mark(gone, State.MISSING, clock()))
        return missing
