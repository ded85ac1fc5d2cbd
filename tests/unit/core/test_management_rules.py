"""What the management API shows of a broker, and what is wrong with it."""

from dataclasses import replace
from typing import Any

from consumer.core.delay import Ladder
from consumer.core.facts import Difference, Managed, Policy, QueueState, Seen
from consumer.core.findings import Severity
from consumer.core.management_rules import of_managed_broker, of_managed_topology
from consumer.core.topology import Binding, build

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4, version=2), 100)
STATES = tuple(QueueState(queue.name, "quorum", queue.arguments, (), {}) for queue in TOPOLOGY.queues)
WELL = Managed(STATES, frozenset(TOPOLOGY.bindings))


def found(managed: Managed, seen: Seen = Seen()) -> list[tuple[Severity, str, str]]:  # noqa: B008 - it is frozen
    return [(f.severity, f.what, f.found) for f in of_managed_topology(managed, seen, TOPOLOGY)]


def with_first(**changes: Any) -> Managed:
    return replace(WELL, queues=(replace(STATES[0], **changes), *STATES[1:]))


def test_nothing_is_found_where_all_is_well() -> None:
    assert found(WELL) == []
    assert list(of_managed_broker(WELL)) == []


def test_each_alarm_and_dead_lettering_at_most_once_are_faults_and_what_can_t_be_seen_is_said() -> None:
    broker = replace(WELL, alarms=("memory on a", "disk on b"), at_least_once=False)
    assert [(f.severity, f.found) for f in of_managed_broker(broker)] == [
        (Severity.FAULT, "memory on a"),
        (Severity.FAULT, "disk on b"),
        (Severity.FAULT, "at most once"),
    ]
    [unseen] = of_managed_broker(replace(WELL, at_least_once=None))
    assert unseen.severity is Severity.UNSEEN


def test_an_argument_that_amqp_showed_already_is_not_told_twice() -> None:
    arguments = dict(STATES[0].arguments) | {"x-delivery-limit": 5, "x-max-length": 9}
    known = Difference("queue 'jobs.default.v2'", "x-delivery-limit", "5", "100")
    assert found(with_first(arguments=arguments), Seen(differences=(known,))) == [
        (Severity.FAULT, "queue 'jobs.default.v2', x-max-length", "9")
    ]


def test_a_queue_of_another_type_is_a_fault() -> None:
    classic = {name: value for name, value in STATES[0].arguments.items() if name != "x-queue-type"}
    assert found(with_first(type="classic", arguments=classic)) == [
        (Severity.FAULT, "queue 'jobs.default.v2', x-queue-type", "classic")
    ]


def test_missing_bindings_are_a_fault() -> None:
    bindings = frozenset(TOPOLOGY.bindings) - set(TOPOLOGY.bindings[:2])
    lacking = "no jobs → jobs.default.v2 (default), jobs.dlx → jobs.default.v2.dead (default)"
    assert found(replace(WELL, bindings=bindings)) == [(Severity.FAULT, "bindings", lacking)]


def test_a_queue_that_gets_the_same_messages_is_a_warning_and_any_other_binding_is_none() -> None:
    more = {
        Binding("jobs", "jobs.default", "default"),
        Binding("jobs", "jobs.other", "other"),
        Binding("", "jobs.default", "jobs.default"),
    }
    assert found(replace(WELL, bindings=frozenset(TOPOLOGY.bindings) | more)) == [
        (Severity.WARNING, "bindings of other queues", "jobs → jobs.default (default)")
    ]


def test_members_that_are_offline_and_statistics_that_are_not_there_are_told() -> None:
    assert found(with_first(members=3, online=2)) == [
        (Severity.WARNING, "queue 'jobs.default.v2'", "2 of 3 members online")
    ]
    assert found(with_first(definition=None)) == [
        (Severity.UNSEEN, "policies", "no statistics yet of queue 'jobs.default.v2'")
    ]


def test_a_policy_is_looked_for_on_every_queue() -> None:
    assert found(with_first(definition={"expires": 9}, policies=(Policy("policy 'p'"),))) == [
        (Severity.FAULT, "expires of jobs.default.v2", "9 by policy 'p'")
    ]
