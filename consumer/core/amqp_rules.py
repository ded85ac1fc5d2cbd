"""What is wrong with a broker, judged by what AMQP shows of it."""

import re
from collections.abc import Iterator

from consumer.core.facts import Difference, MissingRight, Right, Seen
from consumer.core.findings import Finding, Severity, listed
from consumer.core.topology import Topology

PRODUCT = "RabbitMQ"
OLDEST, NEWEST = (3, 10), (4, 3)
TRIED = "RabbitMQ 3.10 to 4.3"
NEEDED = frozenset({"publisher_confirms", "basic.nack", "consumer_cancel_notify", "connection.blocked"})
CHANGE = (
    "arguments of a live queue or exchange can't be changed: raise topology.version and run "
    "'consumer topology migrate', nothing is deleted automatically"
)
DECLARE = "run 'consumer topology declare' as a user with the configure permission"
GRANT = "grant it as in docs/operations.md, 'Permissions on the broker'"


def of_broker(seen: Seen) -> list[Finding]:
    return [*_version(seen), *_capabilities(seen), *_held_back(seen)]


def of_topology(seen: Seen, topology: Topology, *, declaring: bool) -> list[Finding]:
    """`declaring`: the daemon declares everything itself, so it needs the rights to do so."""
    rights = _rights_to_declare(seen) if declaring else _rights_to_work(seen, topology)
    found = (*map(differing, seen.differences), *rights, *_left(seen), *_strays(seen, topology))
    return [*_missing(seen), *found]


def differing(difference: Difference) -> Finding:
    what = f"{difference.what}, {difference.argument}"
    return Finding(Severity.FAULT, what, difference.found, difference.wanted, CHANGE)


def _version(seen: Seen) -> Iterator[Finding]:
    found = f"{seen.product} {seen.version}".strip() or "a broker without a name"
    number = re.match(r"(\d+)\.(\d+)\b", seen.version)
    if seen.product != PRODUCT or number is None:
        yield Finding(Severity.WARNING, "broker", found, TRIED, "no other was tried: run the tests on it first")
        return
    version = (int(number[1]), int(number[2]))
    if version < OLDEST:
        yield Finding(Severity.FAULT, "broker", found, TRIED, "upgrade it: older ones lose dead letters and waits")
    elif version > NEWEST:
        yield Finding(Severity.WARNING, "broker", found, TRIED, "no newer one was tried: run the tests on it first")


def _capabilities(seen: Seen) -> Iterator[Finding]:
    if lacking := sorted(NEEDED - seen.capabilities):
        way_out = "use a broker that has them: without them messages can be lost in silence"
        yield Finding(Severity.FAULT, "what the broker can do", f"no {listed(lacking)}", "all of them", way_out)


def _held_back(seen: Seen) -> Iterator[Finding]:
    if seen.held_back:
        way_out = "free memory or disk on the broker: until then retries and dead letters can't be published"
        yield Finding(Severity.FAULT, "publishing", "held back by the broker", "no alarm in effect", way_out)


def _missing(seen: Seen) -> Iterator[Finding]:
    if seen.missing:
        found = f"not on the broker: {listed(seen.missing)}"
        yield Finding(Severity.FAULT, "queues and exchanges", found, "all of them there", DECLARE)


def _rights_to_declare(seen: Seen) -> Iterator[Finding]:
    way_out = f"{GRANT}, or set topology.mode to 'check'"
    for right in Right:
        if lacking := [missing.what for missing in seen.missing_rights if missing.right is right]:
            yield _refused(Severity.FAULT, right, lacking, way_out)


def _rights_to_work(seen: Seen, topology: Topology) -> Iterator[Finding]:
    """In mode 'check' the daemon reads its work, and publishes to the ladder and the dead letters.

    Without the others, something that people or helpers of the daemon do fails, but no delivery.
    """
    some = {
        MissingRight(Right.WRITE, f"exchange '{topology.namespace}'"): "nothing can be submitted or redriven",
        MissingRight(Right.READ, f"queue '{topology.dead_queue}'"): "this user can't work with dead letters",
        MissingRight(Right.READ, f"queue '{topology.ladder.stray}'"): "no stray comes home",
    }
    for right in (Right.WRITE, Right.READ):
        refused = [missing for missing in seen.missing_rights if missing.right is right]
        if lacking := [missing.what for missing in refused if missing not in some]:
            yield _refused(Severity.FAULT, right, lacking, GRANT)
        for missing in (missing for missing in refused if missing in some):
            yield _refused(Severity.WARNING, right, [missing.what], f"{GRANT}; until then {some[missing]}")
    if unseen := [missing.what for missing in seen.missing_rights if missing.right is Right.CONFIGURE]:
        way_out = f"run this as a user who has that right for: {listed(unseen)}"
        yield Finding(
            Severity.UNSEEN, "arguments of queues", "no right to configure", "a look at each of them", way_out
        )


def _refused(severity: Severity, right: Right, lacking: list[str], way_out: str) -> Finding:
    found = f"refused for {listed(lacking)}"
    return Finding(severity, f"the user's right to {right}", found, "granted", way_out)


def _left(seen: Seen) -> Iterator[Finding]:
    for queue, count in seen.left:
        way_out = "move them with 'consumer topology migrate' once no daemon of that version runs"
        yield Finding(Severity.WARNING, f"queue '{queue}' of an older version", f"{count} messages", "none", way_out)


def _strays(seen: Seen, topology: Topology) -> Iterator[Finding]:
    """Of our queue or of any other of the namespace: only who reads them would know."""
    for queue, count in seen.strays:
        way_out = (
            "start a daemon of each queue that they are for: it takes its own home within some minutes, and names "
            "the others in its log"
        )
        if queue != topology.ladder.stray:
            way_out = "run 'consumer topology migrate' from that version, for each queue that they are for"
        found = f"{count} copies that found no work queue after their wait"
        yield Finding(Severity.WARNING, f"queue '{queue}'", found, "none", way_out)
