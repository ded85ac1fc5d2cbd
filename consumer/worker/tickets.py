"""The parent's two ends of the socket by which a child gets its tickets: whoever receives a ticket has it."""

import socket
from contextlib import suppress

from consumer.worker.wire import HEADER, Type, head


class Tickets:
    """`unclaimed` is a copy of the child's end: what we receive there, the child can't."""

    def __init__(self, ours: socket.socket, unclaimed: socket.socket) -> None:
        self._ours = ours
        self._unclaimed = unclaimed

    def give(self, ticket: bytes) -> None:
        """Raises BlockingIOError where as many lie there as the socket takes, other errors where the child is dead."""
        self._ours.send(ticket, socket.MSG_DONTWAIT)

    def wish_end(self, job_id: int) -> None:
        """Lay the wish that the running job ends among the tickets: its child looks for it there."""
        with suppress(OSError):
            self.give(head(Type.CANCEL, job_id))

    def take_back(self) -> set[int]:
        """The ids of the jobs whose tickets nobody has received. Wishes stay there."""
        taken, wishes = set(), []
        with suppress(BlockingIOError):
            while packet := self._unclaimed.recv(HEADER.size, socket.MSG_DONTWAIT):
                _, _, kind, job_id = HEADER.unpack(packet)
                if kind == Type.CANCEL:
                    wishes.append(job_id)
                else:
                    taken.add(job_id)
        for job_id in wishes:
            self.wish_end(job_id)
        return taken

    def end(self) -> None:
        """There are no more to come: the child ends by itself when it has done what it got."""
        self._ours.close()

    def close(self) -> None:
        self._ours.close()
        self._unclaimed.close()
