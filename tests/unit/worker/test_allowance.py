import pytest

from consumer.worker.allowance import LEAST, PARENT, allowance

MIB = 1024 * 1024


def test_children_share_what_the_daemon_leaves_of_the_containers_memory() -> None:
    share = allowance(explicit=0, container=1024 * MIB, children=4, used=96 * MIB)
    assert share == 96 * MIB + (1024 * MIB - PARENT - 96 * MIB) // 4


def test_what_they_share_of_the_zygote_counts_once_and_not_for_each() -> None:
    """A model of 600 MiB that was loaded before the fork leaves them as much as a small one less 600 MiB."""
    heavy = allowance(explicit=0, container=1024 * MIB, children=2, used=600 * MIB)
    assert heavy - 600 * MIB == (1024 * MIB - PARENT - 600 * MIB) // 2


@pytest.mark.parametrize("container", [1, 200 * MIB])
def test_a_container_that_is_too_small_still_lets_a_child_do_something(container: int) -> None:
    assert allowance(explicit=0, container=container, children=8, used=50 * MIB) == 50 * MIB + LEAST


@pytest.mark.parametrize(("explicit", "limit"), [(700 * MIB, 700 * MIB), (-1, 0)])
def test_what_the_settings_say_wins(explicit: int, limit: int) -> None:
    assert allowance(explicit=explicit, container=1024 * MIB, children=2, used=50 * MIB) == limit


def test_there_is_no_limit_where_the_container_has_none() -> None:
    assert allowance(explicit=0, container=0, children=2, used=50 * MIB) == 0
