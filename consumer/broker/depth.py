"""How much there is in a queue, and for whom."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Depth:
    """`ready` leaves out what is handed out and not yet acked."""

    ready: int
    consumers: int
