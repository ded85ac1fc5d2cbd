"""What a dead letter says about itself, whoever put it into the queue."""

from datetime import datetime
from typing import Any

from schemas import headers
from schemas.codes import Code

DELIVERY_LIMIT, EXPIRED = "delivery_limit", "expired"
COUNTED = ("x-delivery-count", "x-acquired-count")
"""What the broker notes of each delivery, so that it changes while a letter lies there; a copy begins anew."""


def code_of(table: dict[str, Any], work_queue: str) -> str:
    """Our code; `collateral` or `expired` where the broker gave up a message that we never blamed; else empty.

    The broker's delivery limit is its last net: losing a connection charges every message in hand, so what it
    catches are mostly innocents. What the broker says is in x-first-death-reason, or in the newest x-death.
    A wait in the delay ladder ends as `expired` too, so that counts only where it was in the work queue.
    """
    if headers.CODE in table:
        return str(table[headers.CODE])
    newest = _newest(table)
    reasons = (newest.get("reason"), table.get("x-last-death-reason"), table.get("x-first-death-reason"))
    if DELIVERY_LIMIT in reasons:
        return str(Code.COLLATERAL)
    in_work = any(death.get("reason") == EXPIRED and death.get("queue") == work_queue for death in _deaths(table))
    return str(Code.EXPIRED) if in_work else ""


def died_at(table: dict[str, Any]) -> int | None:
    """When it came into the dead-letter queue, in epoch ms, as far as anybody said so."""
    ours, theirs = table.get(headers.DEAD_AT), _newest(table).get("time")
    if type(ours) is int:
        return ours
    return int(theirs.timestamp() * 1000) if isinstance(theirs, datetime) else None


def _newest(table: dict[str, Any]) -> dict[str, Any]:
    return next(iter(_deaths(table)), {})


def _deaths(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The broker's list, the newest first, whatever the header holds."""
    deaths = table.get("x-death")
    return [death for death in deaths if isinstance(death, dict)] if isinstance(deaths, list) else []
