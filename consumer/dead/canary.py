"""The first letters of a redrive, whose outcome decides whether the others follow."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from consumer.core.errors import Unfinished
from consumer.core.letters import Letter
from consumer.core.ports import Store
from consumer.core.row import Row, Status
from consumer.waiting import told

BETWEEN_LOOKS = 0.2
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Canary:
    """`patience`: seconds until all of them must have succeeded."""

    count: int
    patience: float


async def watch(store: Store, sent: Sequence[Letter], canary: Canary, interrupted: asyncio.Event) -> None:
    """Return when all have succeeded, or after an interruption; raise Unfinished where that won't be."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + canary.patience
    waiting = list(sent)
    while waiting := [letter for letter in waiting if not await _has_succeeded(store, letter)]:
        if loop.time() >= deadline:
            first = waiting[0]
            raise Unfinished(
                f"the canary stopped: {len(waiting)} of {len(sent)} redriven letters did not succeed within "
                f"{canary.patience:g} s, the first is {first.id} ({_name(first)})"
            )
        if await told(interrupted, BETWEEN_LOOKS):
            return


async def _has_succeeded(store: Store, letter: Letter) -> bool:
    if letter.kind is None or letter.key is None:
        raise Unfinished(f"the canary stopped: nobody sees what becomes of letter {letter.id} ({_name(letter)})")
    row = await store.find(letter.kind, letter.key)
    answer = outcome_of(row, letter.generation + 1)
    if answer is False:
        assert row is not None
        why = f" ({row.fault.code}: {row.fault.error_type})" if row.fault else ""
        raise Unfinished(f"the canary stopped: letter {letter.id} ({_name(letter)}) {row.status} again{why}")
    return answer is True


def outcome_of(row: Row | None, generation: int) -> bool | None:
    """Whether the job succeeded since it was sent as this generation; None while that is open."""
    if row is None:
        return None
    if row.status is Status.SUCCEEDED:
        return True
    return False if row.status in (Status.FAILED, Status.CANCELLED) and row.generation >= generation else None


def _name(letter: Letter) -> str:
    return f"{letter.kind or 'no kind'} {letter.key or 'no key'}"
