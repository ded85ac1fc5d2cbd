"""Only what a policy really changes, and what we need, is reported: the broker takes the smaller of two limits."""

from typing import Any

import pytest

from consumer.core.delay import Ladder
from consumer.core.facts import Policy, QueueState
from consumer.core.overrides import overridden
from consumer.core.topology import Queue, build

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4), 100)
WORK, DEAD, RUNG = TOPOLOGY.queues[0], TOPOLOGY.queues[1], TOPOLOGY.queues[3]
QUEUES = {"work": WORK, "dead": DEAD, "rung": RUNG}


def found(role: str, **definition: Any) -> list[tuple[str, str]]:
    """Severity and key of each finding; `rung` holds messages for 200 ms."""
    queue = QUEUES[role]
    policy = {name.replace("_", "-"): value for name, value in definition.items()}
    state = QueueState(queue.name, "quorum", queue.arguments, (Policy("policy 'p'", policy),), policy)
    return [(f.severity.value, f.what.split(" of ")[0]) for f in overridden([(state, queue)], TOPOLOGY)]


@pytest.mark.parametrize(
    ("role", "definition"),
    [
        ("work", {"delivery_limit": 100}),
        ("work", {"delivery_limit": -1}),
        ("work", {"overflow": "drop-head", "dead_letter_exchange": "x", "dead_letter_routing_key": "x"}),
        ("work", {"dead_letter_strategy": "at-most-once", "queue_leader_locator": "balanced", "ha_mode": "all"}),
        ("work", {"consumer_timeout": 1000}),
        ("rung", {"message_ttl": 200}),
        ("rung", {"message_ttl": 60_000, "dead_letter_exchange": "x"}),
        ("dead", {"overflow": "reject-publish"}),
        ("dead", {}),
    ],
)
def test_a_policy_that_an_argument_outweighs_is_no_finding(role: str, definition: dict[str, Any]) -> None:
    assert found(role, **definition) == []


@pytest.mark.parametrize(
    ("role", "definition", "key"),
    [
        ("work", {"message_ttl": 86_400_000}, "message-ttl"),
        ("work", {"expires": 1}, "expires"),
        ("work", {"delivery_limit": 99}, "delivery-limit"),
        ("dead", {"message_ttl": 1}, "message-ttl"),
        ("dead", {"delivery_limit": 20}, "delivery-limit"),
        ("dead", {"dead_letter_exchange": "x"}, "dead-letter-exchange"),
        ("dead", {"max_length": 10}, "max-length"),
        ("dead", {"max_length_bytes": 10, "overflow": "drop-head"}, "max-length-bytes"),
        ("rung", {"message_ttl": 199}, "message-ttl"),
        ("rung", {"expires": 1}, "expires"),
        ("rung", {"dead_letter_routing_key": "x"}, "dead-letter-routing-key"),
    ],
)
def test_a_policy_that_loses_or_misleads_messages_is_a_fault(role: str, definition: dict[str, Any], key: str) -> None:
    assert found(role, **definition) == [("fault", key)]


@pytest.mark.parametrize(
    ("role", "definition"),
    [
        ("work", {"max_length": 10, "overflow": "drop-head"}),
        ("rung", {"max_length": 10}),
        ("dead", {"max_length": 10, "overflow": "reject-publish"}),
    ],
)
def test_a_cap_that_refuses_is_a_warning(role: str, definition: dict[str, Any]) -> None:
    assert found(role, **definition) == [("warning", "max-length")]


def state_of(queue: Queue, *policies: Policy, **effective: Any) -> tuple[QueueState, Queue]:
    return QueueState(queue.name, "quorum", queue.arguments, policies, effective), queue


@pytest.mark.parametrize(
    ("mine", "theirs", "found"),
    [
        (None, None, "policy 'mine' or operator policy 'theirs'"),
        ({"expires": 5}, {"max-length": 5}, "policy 'mine'"),
        ({"expires": 9}, {"expires": 5}, "operator policy 'theirs'"),
        ({"expires": 9}, None, "operator policy 'theirs'"),
        ({}, {}, "a policy"),
    ],
)
def test_it_says_by_which_policy_as_far_as_the_user_may_know(mine: Any, theirs: Any, found: str) -> None:
    policies = (Policy("policy 'mine'", mine), Policy("operator policy 'theirs'", theirs))
    [finding] = overridden([state_of(WORK, *policies, expires=5)], TOPOLOGY)
    assert finding.found == f"5 by {found}"
    assert finding.way_out.startswith("take expires out of the policy")


def test_what_one_policy_does_to_many_queues_is_one_finding() -> None:
    policy = Policy("policy 'p'")
    [finding] = overridden([state_of(queue, policy, **{"delivery-limit": 3}) for queue in TOPOLOGY.queues], TOPOLOGY)
    assert finding.what == "delivery-limit of jobs.default, jobs.default.dead, jobs.delay.v1.0, 4 more"
    assert finding.wanted == "100 or 1000000000"
