import os

from consumer.worker.mark import Mark, shared_memory


def test_what_one_side_writes_the_other_reads_and_still_reads_when_the_writer_is_gone() -> None:
    memory = shared_memory()
    child, parent = Mark(memory), Mark(memory)
    os.close(memory)
    child.enter(7)
    child.thread(2, 8)
    child.strangers(3)
    child.at_its_own_process(9)
    child.close()
    assert (parent.steps, parent.who, parent.in_threads, parent.has_strangers) == (1, 7, frozenset({8}), True)
    assert parent.at_itself == {9}
    parent.close()


def test_between_two_steps_nobody_is_named() -> None:
    memory = shared_memory()
    mark = Mark(memory)
    os.close(memory)
    mark.enter(7)
    mark.leave()
    mark.thread(0, 9)
    mark.thread(0, 0)
    mark.at_its_own_process(7)
    mark.at_its_own_process(0)
    assert (mark.steps, mark.who, mark.in_threads, mark.at_itself) == (1, 0, frozenset(), frozenset())
    assert not mark.has_strangers
    mark.enter_unknown()
    assert (mark.steps, mark.who, mark.has_strangers) == (2, 0, True)
    mark.close()
