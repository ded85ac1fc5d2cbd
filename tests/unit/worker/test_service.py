from consumer.worker.service import Service
from consumer.worker.wear import Wear


def test_a_child_that_may_serve_for_ever_does() -> None:
    service = Service(Wear(), now=0.0)
    assert not any(service.had_its_jobs() for _ in range(100))
    assert not service.is_enough(10**9, 10**12, lambda: 10**12)


def test_the_last_of_its_jobs_is_told() -> None:
    service = Service(Wear(jobs=3), now=0.0)
    assert [service.had_its_jobs() for _ in range(4)] == [False, False, True, False]


def test_it_is_too_old_from_its_age_on() -> None:
    service = Service(Wear(age=60.0), now=100.0)
    assert not service.is_enough(159.0, 0, lambda: 0)
    assert service.is_enough(160.0, 0, lambda: 0)


def test_what_it_holds_after_a_job_counts_and_not_what_the_job_took() -> None:
    looked: list[str] = []

    def held() -> int:
        looked.append("looked")
        return 400

    service = Service(Wear(memory=500), now=0.0)
    assert not service.is_enough(0.0, 500, held)
    assert looked == []
    assert not service.is_enough(0.0, 501, held)
    assert looked == ["looked"]
    assert service.is_enough(0.0, 501, lambda: 501)
