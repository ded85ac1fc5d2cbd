"""What a look at everything around us found, as values that say how to get out of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MANY = 3
"""Names that a sentence may hold before it counts the rest."""


class Severity(StrEnum):
    FAULT = "fault"
    WARNING = "warning"
    UNSEEN = "not looked at"


@dataclass(frozen=True, slots=True)
class Finding:
    """Its text is one sentence. A fault has to be mended before the daemon can keep its promises."""

    severity: Severity
    what: str
    found: str
    wanted: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.what}: found {self.found}, wanted {self.wanted}; {self.way_out}"


def listed(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    shown = ", ".join(names[:MANY])
    return shown if len(names) <= MANY else f"{shown}, {len(names) - MANY} more"
