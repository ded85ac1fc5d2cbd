"""Dead letters thrown away: for good, so that who, when, which and how many is said in the log."""

from dataclasses import dataclass, replace

import structlog

from config.settings import Settings
from consumer.core.letter_index import Wanted
from consumer.core.letters import Letter, State
from consumer.dead.desk import Removal, desk
from consumer.operations import closing_store, who


@dataclass(frozen=True, slots=True)
class Purge:
    """`until`: when somebody looked at what would go. What died later stays."""

    wanted: Wanted
    shown: str
    until: int


async def purge(settings: Settings, order: Purge) -> int:
    limit = order.until if order.wanted.until is None else min(order.until, order.wanted.until)
    async with closing_store(settings) as store, desk(settings, store) as at:
        removal = Removal(at, State.PURGED, _nothing)
        try:
            await removal.take(replace(order.wanted, until=limit))
        finally:
            if removal.done:
                _tell(order, removal.done)
    return removal.done


async def _nothing(_: Letter) -> None:
    """Nothing is to be done before a letter is thrown away."""


def _tell(order: Purge, count: int) -> None:
    log = structlog.get_logger("consumer.dead")
    log.error("dead letters purged", by=who(), queue=order.wanted.queue, which=order.shown, count=count)
