"""The phases of the process: starting → consuming ⇄ paused → draining → stopped."""

from enum import StrEnum


class Phase(StrEnum):
    STARTING = "starting"
    CONSUMING = "consuming"
    PAUSED = "paused"
    DRAINING = "draining"
    STOPPED = "stopped"


FOLLOWS: dict[Phase, frozenset[Phase]] = {
    Phase.STARTING: frozenset({Phase.CONSUMING, Phase.PAUSED, Phase.DRAINING, Phase.STOPPED}),
    Phase.CONSUMING: frozenset({Phase.PAUSED, Phase.DRAINING}),
    Phase.PAUSED: frozenset({Phase.CONSUMING, Phase.DRAINING}),
    Phase.DRAINING: frozenset({Phase.STOPPED}),
    Phase.STOPPED: frozenset(),
}


def may_follow(now: Phase, then: Phase) -> bool:
    """Nothing leaves draining but the end, whatever else happens meanwhile."""
    return then in FOLLOWS[now]
