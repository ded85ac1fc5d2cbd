"""Whose dead letter it is."""

import pytest

from consumer.core.deadletters import code_of


def test_a_dead_letter_of_ours_has_its_code() -> None:
    assert code_of({"consumer-code": "rejected", "x-first-death-reason": "delivery_limit"}) == "rejected"


@pytest.mark.parametrize(
    "table",
    [
        {"x-death": [{"reason": "delivery_limit", "count": 1}]},
        {"x-first-death-reason": "delivery_limit"},
        {"x-last-death-reason": "delivery_limit"},
    ],
)
def test_what_the_brokers_delivery_limit_caught_is_collateral(table: dict[str, object]) -> None:
    assert code_of(table) == "collateral"


@pytest.mark.parametrize("table", [{}, {"x-death": "nonsense"}, {"x-death": []}, {"x-death": [7]}])
def test_what_nobody_labelled_has_no_code(table: dict[str, object]) -> None:
    assert code_of(table) == ""
