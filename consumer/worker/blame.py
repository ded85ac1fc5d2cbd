"""Who ended an io child, as far as that can be told. Pure."""

from dataclasses import dataclass

NOBODY: frozenset[int] = frozenset()
FROM_INSIDE, FROM_OUTSIDE = 2, 1
"""How much an end counts against those who may have caused it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ids of runs. `found`: whom the watch charged when it gave the child up, if it did; else the child died by itself.

    `seen` were at work in that instant. `killed`: by SIGKILL, which the kernel sends for want of memory, or somebody,
    whoever is at work. `alone`: the one that had begun was there without company.
    """

    begun: frozenset[int]
    found: frozenset[int] | None
    seen: frozenset[int]
    killed: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class Blame:
    """Those who surely did it; where there are none, those who may have."""

    guilty: frozenset[int]
    suspects: frozenset[int] = NOBODY
    weight: int = 0


def blame(evidence: Evidence) -> Blame:
    if evidence.found is not None:
        guilty = evidence.found & evidence.begun
        return Blame(guilty) if guilty else Blame(NOBODY, evidence.begun, FROM_INSIDE)
    suspects = evidence.seen or evidence.begun
    if evidence.killed:
        return Blame(NOBODY, suspects, FROM_INSIDE if evidence.seen else FROM_OUTSIDE)
    guilty = evidence.begun if evidence.alone else only_one(evidence.seen)
    return Blame(guilty) if guilty else Blame(NOBODY, suspects, FROM_INSIDE)


def only_one(suspects: frozenset[int]) -> frozenset[int]:
    """Of several, none can be charged."""
    return suspects if len(suspects) == 1 else NOBODY
