"""Policies that make something else of our queues than their arguments say.

Of a limit that is set both by argument and by policy the broker takes the smaller one; of everything else the
argument. So a policy changes what we need by a smaller number, or by a key that the queue has no argument for.
"""

from collections.abc import Iterator
from typing import Any

from consumer.core.facts import QueueState
from consumer.core.findings import Finding, Severity
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


def overridden(state: QueueState, queue: Queue, topology: Topology) -> Iterator[Finding]:
    """`queue` is how we want what `state` shows."""
    policy = state.definition or {}
    for key, harm in LIMITS.items():
        own = queue.arguments.get(f"x-{key}")
        if key in policy and (own is None or _smaller(policy[key], own)):
            yield _finding(Severity.FAULT, state, key, harm, "none" if own is None else str(own))
    for key, harm in ROUTES.items():
        if key in policy and f"x-{key}" not in queue.arguments:
            yield _finding(Severity.FAULT, state, key, harm, "none")
    yield from _capped(state, queue, topology)


def _capped(state: QueueState, queue: Queue, topology: Topology) -> Iterator[Finding]:
    """A cap that refuses holds up whoever publishes, and loses nothing; the dead letters' queue may drop."""
    policy = state.definition or {}
    drops = str(queue.arguments.get("x-overflow", policy.get("overflow", DROPS))) != REFUSES
    for key in CAPS:
        if key not in policy:
            continue
        if drops:
            yield _finding(Severity.FAULT, state, key, "the oldest messages are dropped in silence", "none")
        else:
            who = "producers" if queue.name == topology.work_queue else "retries and dead letters"
            yield _finding(Severity.WARNING, state, key, f"{who} are refused when it is full", "none")


def _smaller(value: Any, own: str | int) -> bool:
    return isinstance(value, int) and isinstance(own, int) and 0 <= value < own


def _finding(severity: Severity, state: QueueState, key: str, harm: str, wanted: str) -> Finding:
    found = f"{state.definition[key] if state.definition else None} by {' or '.join(state.policies) or 'a policy'}"
    way_out = f"take {key} out of the policy, or let it not match our queues: with it {harm}"
    return Finding(severity, f"queue '{state.name}', {key}", found, wanted, way_out)
