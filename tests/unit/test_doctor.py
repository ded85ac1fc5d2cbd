"""What the doctor makes of all that was seen."""

import pytest

from consumer.core.amqp_rules import NEEDED
from consumer.core.delay import Ladder
from consumer.core.facts import Managed, QueueState, Seen
from consumer.core.findings import Finding, Severity
from consumer.core.topology import build
from consumer.doctor import Broker, Part

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4), 100)
SEEN = Seen("RabbitMQ", "4.3.6", NEEDED)


def broker(**definition: object) -> Broker:
    states = [QueueState(queue.name, "quorum", queue.arguments, (), definition) for queue in TOPOLOGY.queues]
    managed = Managed(tuple(states), frozenset(TOPOLOGY.bindings))
    return Broker(TOPOLOGY, True, "somewhere", SEEN, managed)


def test_a_policy_s_ack_timeout_goes_before_the_setting() -> None:
    assert broker(**{"consumer-timeout": 5_000}).ack_timeout(1800) == 5
    assert broker().ack_timeout(1800) == 1800
    assert Broker(TOPOLOGY, True, "somewhere", SEEN).ack_timeout(1800) == 1800


def test_without_the_management_api_one_finding_says_what_can_t_be_seen() -> None:
    assert broker().topology_findings() == ()
    [finding] = Broker(TOPOLOGY, True, "somewhere", SEEN).topology_findings()
    assert finding.severity is Severity.UNSEEN
    assert "broker.management_url" in finding.way_out


@pytest.mark.parametrize(
    ("severity", "well"), [(Severity.FAULT, False), (Severity.WARNING, True), (Severity.UNSEEN, True)]
)
def test_only_a_fault_makes_a_part_unwell(severity: Severity, well: bool) -> None:
    assert Part("store", "", (Finding(severity, "a", "b", "c", "d"),)).well is well
    assert not Part("store", "", failed=True).well
