from collections import deque

from consumer.core.job import Job
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.gate import Gate
from consumer.worker.needs import Needs
from consumer.worker.run import Run


def a_run(kind: str) -> Run:
    return Run(1, Work(Job(kind, "key", b""), 1, 1.0), Sort.CPU, lambda: None)


def a_gate() -> Gate:
    needs = Needs(room=1_000, places=4)
    needs.learn("large", 700)
    needs.learn("medium", 400)
    needs.learn("small", 100)
    return Gate(needs)


def kinds(ready: deque[Run]) -> list[str]:
    return [run.work.job.kind for run in ready]


async def test_where_memory_is_not_scarce_the_first_goes_first() -> None:
    ready = deque([a_run("new"), a_run("other")])
    run = Gate(Needs(room=1_000, places=4)).next(ready, [], [[a_run("new")]])
    assert run is not None
    assert (run.work.job.kind, kinds(ready)) == ("new", ["other"])


async def test_one_that_does_not_fit_beside_the_others_is_passed_by_one_that_does() -> None:
    gate, ready = a_gate(), deque([a_run("large"), a_run("small")])
    run = gate.next(ready, [], [[a_run("medium")]])
    assert run is not None
    assert (run.work.job.kind, kinds(ready)) == ("small", ["large"])
    assert gate.next(ready, [], [[a_run("medium")]]) is None
    assert gate.next(ready, [], []) is not None


async def test_a_child_needs_what_the_largest_of_its_runs_needs_and_not_their_sum() -> None:
    gate, ready = a_gate(), deque([a_run("medium")])
    assert gate.next(ready, [a_run("large")], [[a_run("small"), a_run("small")], [a_run("small")]]) is not None


async def test_one_that_is_passed_again_and_again_is_waited_for_in_the_end() -> None:
    gate, large = a_gate(), a_run("large")
    passed = 0
    while gate.next(deque([large, a_run("small")]), [], [[a_run("medium")]]):
        passed += 1
    assert passed == 16
    ready = deque([large, a_run("small")])
    assert gate.next(ready, [], [[]]) is large
    assert gate.next(ready, [], [[large]]) is not None
