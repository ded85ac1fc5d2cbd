"""Who ended an io child, as far as that can be told. Pure."""

from dataclasses import dataclass

NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ids of runs, some of which may be over by now. `found` surely did it; `seen` were at work in that instant.

    `perhaps_outside`: it was a signal that we didn't send, and that anybody can, whoever is at work. `alone`: the
    one that had begun had this child to itself, from its start.
    """

    begun: frozenset[int]
    found: frozenset[int]
    seen: frozenset[int]
    perhaps_outside: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class Blame:
    """Those who surely did it; where there are none, those who may have."""

    guilty: frozenset[int]
    suspects: frozenset[int] = NOBODY


def blame(evidence: Evidence) -> Blame:
    begun = evidence.begun
    if evidence.found:
        return Blame(evidence.found & begun)
    if evidence.perhaps_outside:
        return Blame(NOBODY, begun)
    if evidence.alone:
        return Blame(begun)
    if only_one(evidence.seen):
        return Blame(evidence.seen & begun)
    return Blame(NOBODY, evidence.seen & begun if evidence.seen else begun)


def only_one(suspects: frozenset[int]) -> frozenset[int]:
    """Of several, none can be charged."""
    return suspects if len(suspects) == 1 else NOBODY
