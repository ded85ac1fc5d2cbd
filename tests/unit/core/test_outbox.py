from consumer.core.outbox import DOUBLINGS, FollowUp, first_try, next_try


def test_a_follow_up_for_our_own_queue_is_sent_at_once_and_waits_on_the_broker() -> None:
    assert first_try(FollowUp("k", "a", b"1", None, 5_000), 1_000) == 1_000


def test_a_follow_up_for_another_queue_waits_in_the_store() -> None:
    assert first_try(FollowUp("k", "a", b"1", "mail", 5_000), 1_000) == 6_000


def test_one_that_could_not_be_sent_waits_twice_as_long_each_time_up_to_a_limit() -> None:
    waits = [next_try(1_000, 30, tries) - 1_000 for tries in range(DOUBLINGS + 3)]
    assert waits == [30, 60, 120, 240, 480, 960, 1920, 1920, 1920]
