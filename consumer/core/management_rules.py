"""What is wrong with a broker, judged by what its management API shows beyond AMQP."""

from collections.abc import Iterator

from consumer.core.amqp_rules import DECLARE, differing
from consumer.core.facts import Difference, Managed, QueueState, Seen
from consumer.core.findings import Finding, Severity, listed
from consumer.core.overrides import overridden
from consumer.core.topology import Argument, Binding, Topology

WITHOUT = Finding(
    Severity.UNSEEN,
    "policies, bindings, alarms and members of queues",
    "nothing about them",
    "a look at each of them",
    "AMQP doesn't show them: set broker.management_url and give the user the tag 'management'",
)


def unreachable(why: str) -> Finding:
    return Finding(
        Severity.UNSEEN, WITHOUT.what, why, WITHOUT.wanted, "check broker.management_url and the user's tags"
    )


def of_managed_broker(managed: Managed) -> Iterator[Finding]:
    for alarm in managed.alarms:
        way_out = "free memory or disk there: until then the broker takes nothing from any publisher"
        yield Finding(Severity.FAULT, "alarm", alarm, "none in effect", way_out)
    if managed.at_least_once is False:
        way_out = "enable the feature flag stream_queue: without it the broker may lose what leaves a queue"
        yield Finding(Severity.FAULT, "dead-lettering", "at most once", "at least once", way_out)
    if managed.at_least_once is None:
        way_out = "run this as a user with the tag 'administrator'"
        yield Finding(Severity.UNSEEN, "feature flag stream_queue", "no right to see it", "a look at it", way_out)


def of_managed_topology(managed: Managed, seen: Seen, topology: Topology) -> list[Finding]:
    """Without the differences that AMQP showed already."""
    known = {(difference.what, difference.argument) for difference in seen.differences}
    states = {state.name: state for state in managed.queues}
    both = [(states[queue.name], queue) for queue in topology.queues if queue.name in states]
    differences = [d for state, queue in both for d in _differences(state, queue.arguments)]
    return [
        *(differing(difference) for difference in differences if (difference.what, difference.argument) not in known),
        *overridden(both, topology),
        *_unbound(managed, topology),
        *_bound_elsewhere(managed, topology),
        *_offline(managed),
        *_without_statistics(managed),
    ]


def _differences(state: QueueState, wanted: dict[str, Argument]) -> Iterator[Difference]:
    found = {"x-queue-type": state.type, **state.arguments}
    for argument in sorted(found.keys() | wanted.keys()):
        if found.get(argument) != wanted.get(argument):
            shown = (str(side.get(argument, "none")) for side in (found, wanted))
            yield Difference(f"queue '{state.name}'", argument, *shown)


def _unbound(managed: Managed, topology: Topology) -> Iterator[Finding]:
    if lacking := [shown(binding) for binding in topology.bindings if binding not in managed.bindings]:
        yield Finding(Severity.FAULT, "bindings", f"no {listed(lacking)}", "all of them there", DECLARE)


def _bound_elsewhere(managed: Managed, topology: Topology) -> Iterator[Finding]:
    """After a change of version the old queues must go; another team's copy of every job may be meant."""
    ends = {binding.destination for binding in topology.bindings}
    ours = {
        (b.source, b.routing_key)
        for b in topology.bindings
        if b.destination in {topology.work_queue, topology.dead_queue}
    }
    others = [b for b in managed.bindings if (b.source, b.routing_key) in ours and b.destination not in ends]
    if others:
        names = listed(sorted(map(shown, others)))
        way_out = "if they are of an older version, run 'consumer topology migrate'; each message goes there, too"
        yield Finding(Severity.WARNING, "bindings of other queues", names, "none under our routing key", way_out)


def shown(binding: Binding) -> str:
    return f"{binding.source} → {binding.destination} ({binding.routing_key})"


def _offline(managed: Managed) -> Iterator[Finding]:
    for state in managed.queues:
        if state.online < state.members:
            found = f"{state.online} of {state.members} members online"
            way_out = "bring the node back, or remove its member: the queue stops when half of them are away"
            yield Finding(Severity.WARNING, f"queue '{state.name}'", found, "all of them", way_out)


def _without_statistics(managed: Managed) -> Iterator[Finding]:
    if names := [f"queue '{state.name}'" for state in managed.queues if state.definition is None]:
        found, wanted = f"no statistics yet of {listed(names)}", "a look at each of them"
        yield Finding(Severity.UNSEEN, "policies", found, wanted, "run this again in some seconds")
