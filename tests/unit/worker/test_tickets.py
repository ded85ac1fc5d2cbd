import socket
from collections.abc import Iterator

import pytest

from consumer.worker.tickets import Tickets
from consumer.worker.wire import TICKET_LIMIT, Type, head


@pytest.fixture
def ends() -> Iterator[tuple[Tickets, socket.socket]]:
    """The parent's, and the child's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    tickets = Tickets(ours, theirs.dup())
    with theirs:
        yield tickets, theirs
    tickets.close()


def test_a_ticket_is_the_childs_or_can_be_taken_back_but_never_both(ends: tuple[Tickets, socket.socket]) -> None:
    tickets, child = ends
    for job_id in (1, 2, 3):
        tickets.give(head(Type.JOB, job_id, b"{}"))
    assert child.recv(TICKET_LIMIT) == head(Type.JOB, 1, b"{}")
    assert tickets.take_back() == {2, 3}
    assert tickets.take_back() == set()


def test_a_wish_stays_where_the_child_looks_for_it(ends: tuple[Tickets, socket.socket]) -> None:
    tickets, child = ends
    tickets.give(head(Type.JOB, 2, b"{}"))
    tickets.wish_end(1)
    assert tickets.take_back() == {2}
    assert child.recv(TICKET_LIMIT) == head(Type.CANCEL, 1)


def test_after_the_end_the_child_hears_that_no_more_will_come(ends: tuple[Tickets, socket.socket]) -> None:
    tickets, child = ends
    tickets.give(head(Type.JOB, 1))
    tickets.end()
    assert [child.recv(TICKET_LIMIT), child.recv(TICKET_LIMIT)] == [head(Type.JOB, 1), b""]


def test_a_wish_for_a_dead_child_is_nobodys_error_but_a_ticket_is(ends: tuple[Tickets, socket.socket]) -> None:
    tickets, _ = ends
    tickets.end()
    tickets.wish_end(1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        tickets.give(head(Type.JOB, 1))
