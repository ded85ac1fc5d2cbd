from consumer.worker.needs import Needs


def test_a_kind_that_never_ran_counts_for_its_share() -> None:
    needs = Needs(room=1_000, places=4)
    assert needs.of("new") == 250
    assert needs.fit([250, 250, 250], needs.of("new"))


def test_nobody_reckons_while_any_runs_fit_together() -> None:
    needs = Needs(room=1_000, places=4)
    needs.learn("small", 250)
    assert not needs.scarce
    needs.learn("large", 251)
    assert needs.scarce


def test_there_is_nothing_to_reckon_where_there_is_no_limit() -> None:
    needs = Needs(room=0, places=4)
    needs.learn("large", 10**12)
    assert not needs.scarce


def test_what_all_children_share_is_no_room_for_runs() -> None:
    needs = Needs(room=1_000, places=4)
    needs.shrink(600)
    assert needs.of("new") == 100
    unlimited = Needs(room=0, places=4)
    unlimited.shrink(600)
    unlimited.learn("large", 10**12)
    assert not unlimited.scarce


def test_what_does_not_fit_beside_others_fits_alone() -> None:
    needs = Needs(room=1_000, places=4)
    assert needs.fit([600, 300], 100)
    assert not needs.fit([600, 300], 101)
    assert needs.fit([], 5_000)
    assert needs.fit([0, 0], 5_000)


def test_the_largest_run_is_remembered_and_slowly_forgotten() -> None:
    needs = Needs(room=1_000, places=4)
    needs.learn("kind", 900)
    needs.learn("kind", 100)
    assert 880 < needs.of("kind") < 900
    for _ in range(500):
        needs.learn("kind", 100)
    assert needs.of("kind") < 170
    assert not needs.scarce
    needs.learn("kind", 800)
    assert needs.of("kind") == 800
