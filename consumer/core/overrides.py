"""Policies that make something else of our queues than their arguments say.

Of a limit that is set both by argument and by policy the broker takes the smaller one; of everything else the
argument. So a policy changes what we need by a smaller number, or by a key that the queue has no argument for.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from consumer.core.facts import QueueState
from consumer.core.findings import Finding, Severity, listed
from consumer.core.topology import Queue, Topology

LIMITS = {
    "message-ttl": "messages leave the queue before their time",
    "expires": "the broker deletes the queue with all its messages when nobody uses it for a while",
    "delivery-limit": "innocent messages are given up when connections are lost",
}
CAPS = ("max-length", "max-length-bytes")
ROUTES = {
    "dead-letter-exchange": "messages that leave the queue go elsewhere",
    "dead-letter-routing-key": "messages that leave the queue lose their way",
}
DROPS, REFUSES = "drop-head", "reject-publish"


@dataclass(frozen=True, slots=True)
class Effect:
    """What one key of policies does to queues; `value` as people read it."""

    severity: Severity
    key: str
    value: str
    policies: str
    harm: str


Found = tuple[Effect, str]
"""And what is wanted instead, as people read it."""


def overridden(both: Iterable[tuple[QueueState, Queue]], topology: Topology) -> Iterator[Finding]:
    """Each queue as it is and as we want it. What one policy does to several queues is one finding."""
    wanted: dict[Effect, dict[str, str]] = defaultdict(dict)
    for state, queue in both:
        for effect, instead in (*_limits(state, queue), *_caps(state, queue, topology)):
            wanted[effect][queue.name] = instead
    for effect, queues in wanted.items():
        key, found = effect.key, f"{effect.value} by {effect.policies}"
        way_out = f"take {key} out of the policy, or let it not match our queues: with it {effect.harm}"
        instead = " or ".join(dict.fromkeys(queues.values()))
        yield Finding(effect.severity, f"{key} of {listed([*queues])}", found, instead, way_out)


def _limits(state: QueueState, queue: Queue) -> Iterator[Found]:
    policy = state.definition or {}
    for key, harm in LIMITS.items():
        own = queue.arguments.get(f"x-{key}")
        if key in policy and (own is None or _smaller(policy[key], own)):
            yield _effect(Severity.FAULT, state, key, harm), "none" if own is None else str(own)
    for key, harm in ROUTES.items():
        if key in policy and f"x-{key}" not in queue.arguments:
            yield _effect(Severity.FAULT, state, key, harm), "none"


def _caps(state: QueueState, queue: Queue, topology: Topology) -> Iterator[Found]:
    """A cap that refuses holds up whoever publishes, and loses nothing; the dead letters' queue may drop.

    Whoever publishes to the work queue is the ladder, too, which all queues share.
    """
    policy = state.definition or {}
    drops = str(queue.arguments.get("x-overflow", policy.get("overflow", DROPS))) != REFUSES
    harm = "retries and dead letters are refused when it is full"
    if queue.name == topology.work_queue:
        harm = "producers are refused when it is full, and retries of all queues of the namespace stand still"
    for key in CAPS:
        if key in policy and drops:
            yield _effect(Severity.FAULT, state, key, "the oldest messages are dropped in silence"), "none"
        elif key in policy:
            yield _effect(Severity.WARNING, state, key, harm), "none"


def _smaller(value: Any, own: str | int) -> bool:
    return isinstance(value, int) and isinstance(own, int) and 0 <= value < own


def _effect(severity: Severity, state: QueueState, key: str, harm: str) -> Effect:
    value = (state.definition or {})[key]
    sources = [p.name for p in state.policies if p.definition is None or p.definition.get(key) == value]
    return Effect(severity, key, str(value), " or ".join(sources) or "a policy", harm)
