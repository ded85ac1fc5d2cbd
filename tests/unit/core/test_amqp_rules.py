"""What AMQP shows of a broker, and what is wrong with it."""

from dataclasses import replace

import pytest

from consumer.core.amqp_rules import NEEDED, of_broker, of_topology
from consumer.core.delay import Ladder
from consumer.core.facts import Difference, MissingRight, Right, Seen
from consumer.core.findings import Severity
from consumer.core.topology import build

TOPOLOGY = build("jobs", "default", Ladder("jobs", levels=4), 100)
WELL = Seen("RabbitMQ", "3.10.8", NEEDED)


def test_nothing_is_found_where_all_is_well() -> None:
    assert of_broker(WELL) == []
    assert of_topology(WELL, TOPOLOGY, declaring=True) == of_topology(WELL, TOPOLOGY, declaring=False) == []


@pytest.mark.parametrize(
    ("product", "version", "severity"),
    [
        ("RabbitMQ", "3.9.29", Severity.FAULT),
        ("RabbitMQ", "3.10.0", None),
        ("RabbitMQ", "4.3.6", None),
        ("RabbitMQ", "4.4.0-rc.1", Severity.WARNING),
        ("RabbitMQ", "5.0", Severity.WARNING),
        ("RabbitMQ", "next", Severity.WARNING),
        ("LavinMQ", "4.2.0", Severity.WARNING),
        ("", "", Severity.WARNING),
    ],
)
def test_a_broker_that_is_too_old_is_a_fault_and_an_unknown_one_a_warning(
    product: str, version: str, severity: Severity | None
) -> None:
    found = of_broker(replace(WELL, product=product, version=version))
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_what_a_broker_can_t_do_and_that_it_holds_us_back_are_faults() -> None:
    lacking, held = of_broker(replace(WELL, capabilities=NEEDED - {"basic.nack"}, held_back=True))
    assert (lacking.severity, lacking.found) == (Severity.FAULT, "no basic.nack")
    assert (held.severity, held.what) == (Severity.FAULT, "publishing")


def test_what_is_missing_is_one_finding_and_each_difference_one_of_its_own() -> None:
    differences = (Difference("queue 'jobs.default'", "x-dead-letter-exchange", "none", "jobs.dlx"),)
    missing, differing = of_topology(
        replace(WELL, missing=tuple("abcde"), differences=differences), TOPOLOGY, declaring=True
    )
    assert missing.found == "not on the broker: a, b, c, 2 more"
    assert "consumer topology declare" in missing.way_out
    assert str(differing).startswith(
        "queue 'jobs.default', x-dead-letter-exchange: found none, wanted jobs.dlx; arguments of a live queue"
    )


def test_who_declares_needs_every_right_and_gets_one_finding_for_each() -> None:
    missing_rights = (
        MissingRight(Right.CONFIGURE, "queue 'a'"),
        MissingRight(Right.READ, "exchange 'b'"),
        MissingRight(Right.CONFIGURE, "queue 'c'"),
    )
    found = of_topology(replace(WELL, missing_rights=missing_rights), TOPOLOGY, declaring=True)
    assert [(finding.severity, finding.what, finding.found) for finding in found] == [
        (Severity.FAULT, "the user's right to configure", "refused for queue 'a', queue 'c'"),
        (Severity.FAULT, "the user's right to read", "refused for exchange 'b'"),
    ]


def test_who_only_works_needs_to_read_work_and_to_publish_copies() -> None:
    missing_rights = (
        MissingRight(Right.CONFIGURE, "queue 'jobs.default'"),
        MissingRight(Right.WRITE, "exchange 'jobs'"),
        MissingRight(Right.WRITE, "exchange 'jobs.dlx'"),
        MissingRight(Right.READ, "queue 'jobs.default'"),
        MissingRight(Right.READ, "queue 'jobs.default.dead'"),
        MissingRight(Right.READ, "queue 'jobs.delay.v1.stray'"),
    )
    found = of_topology(replace(WELL, missing_rights=missing_rights), TOPOLOGY, declaring=False)
    assert [(finding.severity, finding.found) for finding in found] == [
        (Severity.FAULT, "refused for exchange 'jobs.dlx'"),
        (Severity.WARNING, "refused for exchange 'jobs'"),
        (Severity.FAULT, "refused for queue 'jobs.default'"),
        (Severity.WARNING, "refused for queue 'jobs.default.dead'"),
        (Severity.WARNING, "refused for queue 'jobs.delay.v1.stray'"),
        (Severity.UNSEEN, "no right to configure"),
    ]


def test_messages_in_queues_of_an_older_version_are_a_warning() -> None:
    [finding] = of_topology(replace(WELL, left=(("jobs.default", 7),)), TOPOLOGY, declaring=True)
    assert (finding.severity, finding.found) == (Severity.WARNING, "7 messages")
    assert "consumer topology migrate" in finding.way_out


def test_strays_are_a_warning_with_the_way_home() -> None:
    queues = (("jobs.delay.v1.stray", 7), ("jobs.delay.v2.stray", 1))
    ours, older = of_topology(replace(WELL, strays=queues), TOPOLOGY, declaring=True)
    assert (ours.severity, ours.what) == (Severity.WARNING, "queue 'jobs.delay.v1.stray'")
    assert ours.found == "7 copies that found no work queue after their wait"
    assert "start a daemon of each queue" in ours.way_out
    assert "consumer topology migrate" in older.way_out
