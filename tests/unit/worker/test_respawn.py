from itertools import pairwise

from consumer.worker.respawn import Respawn


def test_the_first_replacement_comes_at_once() -> None:
    respawn = Respawn()
    assert respawn.delay == 0
    respawn.died_in_vain()
    assert respawn.delay == 0


def test_deaths_in_vain_make_each_start_later_up_to_a_cap() -> None:
    respawn, delays = Respawn(), []
    for _ in range(40):
        respawn.died_in_vain()
        delays.append(respawn.delay)
    assert delays[:4] == [0, 0.1, 0.2, 0.4]
    assert all(later >= sooner for sooner, later in pairwise(delays))
    assert delays[-1] == 5


def test_a_child_costs_so_little_that_the_next_one_comes_soon_however_many_died() -> None:
    respawn = Respawn(patience=0.1)
    for _ in range(40):
        respawn.died_in_vain()
    assert respawn.delay == 0.1
    for _ in range(40):
        respawn.failed_to_start()
    assert respawn.delay == 5


def test_a_finished_job_forgives_the_deaths_before_it() -> None:
    respawn = Respawn()
    for _ in range(5):
        respawn.died_in_vain()
    respawn.worked()
    assert respawn.delay == 0


def test_crashing_jobs_are_no_reason_to_call_the_pool_unhealthy() -> None:
    respawn = Respawn()
    for _ in range(50):
        respawn.died_in_vain()
    assert respawn.healthy


def test_failing_starts_are_until_one_succeeds() -> None:
    respawn = Respawn()
    respawn.failed_to_start()
    respawn.failed_to_start()
    assert respawn.healthy
    respawn.failed_to_start()
    assert not respawn.healthy
    respawn.started()
    assert respawn.healthy
    assert respawn.delay == 0
