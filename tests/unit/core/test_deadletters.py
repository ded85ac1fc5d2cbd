"""Whose dead letter it is, and since when."""

from datetime import UTC, datetime

import pytest

from consumer.core.deadletters import code_of, died_at

WORK = "jobs.default"
DIED = datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_a_dead_letter_of_ours_has_its_code() -> None:
    assert code_of({"consumer-code": "rejected", "x-first-death-reason": "delivery_limit"}, WORK) == "rejected"


@pytest.mark.parametrize(
    "table",
    [
        {"x-death": [{"reason": "delivery_limit", "count": 1}]},
        {"x-first-death-reason": "delivery_limit"},
        {"x-last-death-reason": "delivery_limit"},
    ],
)
def test_what_the_brokers_delivery_limit_caught_is_collateral(table: dict[str, object]) -> None:
    assert code_of(table, WORK) == "collateral"


def test_what_expired_in_the_work_queue_is_expired() -> None:
    assert code_of({"x-death": [{"reason": "expired", "queue": WORK}]}, WORK) == "expired"


def test_what_came_by_the_delay_ladder_and_was_then_caught_by_the_limit_is_collateral() -> None:
    ladder = {"reason": "expired", "queue": "jobs.delay.v1.3"}
    table = {"x-death": [{"reason": "delivery_limit", "queue": WORK}, ladder], "x-first-death-reason": "expired"}
    assert code_of(table, WORK) == "collateral"


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"x-death": "nonsense"},
        {"x-death": []},
        {"x-death": [7]},
        {"x-death": [{"reason": "expired", "queue": "jobs.delay.v1.3"}]},
    ],
)
def test_what_nobody_labelled_has_no_code(table: dict[str, object]) -> None:
    assert code_of(table, WORK) == ""


@pytest.mark.parametrize(
    ("table", "at"),
    [
        ({"consumer-dead-ms": 7, "x-death": [{"time": DIED}]}, 7),
        ({"x-death": [{"time": DIED}]}, int(DIED.timestamp() * 1000)),
        ({"x-death": [{"time": "noon"}]}, None),
        ({"consumer-dead-ms": True}, None),
    ],
)
def test_it_is_dead_since_we_or_the_broker_said_so(table: dict[str, object], at: int | None) -> None:
    assert died_at(table) == at
