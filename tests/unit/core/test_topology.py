"""Names: only the queues change with the version, so producers notice no migration."""

import pytest

from consumer.core.delay import Ladder
from consumer.core.topology import NEVER, Binding, Topology, build


def topology(version: int) -> Topology:
    return build("jobs", "default", Ladder("jobs", levels=4, version=version), 100)


@pytest.mark.parametrize(
    ("version", "work", "dead", "rung"),
    [
        (1, "jobs.default", "jobs.default.dead", "jobs.delay.v1.0"),
        (2, "jobs.default.v2", "jobs.default.v2.dead", "jobs.delay.v2.0"),
        (10, "jobs.default.v10", "jobs.default.v10.dead", "jobs.delay.v10.0"),
    ],
)
def test_a_version_names_its_queues(version: int, work: str, dead: str, rung: str) -> None:
    chosen = topology(version)
    assert [queue.name for queue in chosen.queues[:3]] == [work, dead, rung]
    assert (chosen.work_queue, chosen.dead_queue) == (work, dead)


def test_two_versions_share_the_exchanges_that_producers_and_dead_letters_use_and_nothing_else() -> None:
    first, second = topology(1), topology(2)
    assert set(first.exchanges) & set(second.exchanges) == set(first.exchanges[:2])
    assert [exchange.name for exchange in first.exchanges[:2]] == ["jobs", "jobs.dlx"]
    assert not {queue.name for queue in first.queues} & {queue.name for queue in second.queues}
    assert not set(first.bindings) & set(second.bindings)


def test_a_version_is_bound_under_the_same_routing_key_as_the_one_before() -> None:
    keys = [{(b.source, b.routing_key) for b in topology(version).bindings[:2]} for version in (1, 2)]
    assert keys[0] == keys[1] == {("jobs", "default"), ("jobs.dlx", "default")}


def test_what_comes_out_of_the_ladder_and_finds_no_queue_goes_to_one_of_its_own_which_keeps_it() -> None:
    chosen = topology(2)
    [out] = [exchange for exchange in chosen.exchanges if exchange.name == "jobs.delay.v2.out"]
    assert out.arguments == {"alternate-exchange": "jobs.delay.v2.stray"}
    assert Binding("jobs.delay.v2.stray", "jobs.delay.v2.stray", "") in chosen.bindings
    [stray] = [queue for queue in chosen.queues if queue.name == "jobs.delay.v2.stray"]
    assert not stray.arguments.keys() & {"x-message-ttl", "x-dead-letter-exchange", "x-max-length"}
    assert (stray.arguments["x-overflow"], stray.arguments["x-delivery-limit"]) == ("reject-publish", NEVER)
