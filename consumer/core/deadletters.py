"""What a dead letter says about itself, whoever put it into the queue."""

from typing import Any

from schemas import headers
from schemas.codes import Code

DELIVERY_LIMIT = "delivery_limit"


def code_of(table: dict[str, Any]) -> str:
    """Our code; `collateral` where the broker gave up a message that was never blamed itself; else empty.

    The broker's delivery limit is its last net: losing a connection charges every message in hand, so what it
    catches are mostly innocents. What the broker says is in x-first-death-reason, or in the newest x-death.
    """
    if headers.CODE in table:
        return str(table[headers.CODE])
    deaths = table.get("x-death")
    newest = deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict) else {}
    reasons = (newest.get("reason"), table.get("x-last-death-reason"), table.get("x-first-death-reason"))
    return str(Code.COLLATERAL) if DELIVERY_LIMIT in reasons else ""
