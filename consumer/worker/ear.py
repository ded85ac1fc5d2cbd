"""Hears what the jobs of a child say, without letting them hold up the loop or fill the log."""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from consumer.worker.line_cutter import LINE_COST
from consumer.worker.output import Output
from consumer.worker.run import Run
from consumer.worker.wire import TICKET_LIMIT, Frame, Type, whole

OUTPUT = "output"
_A_FEW = 16
_ALL = 512
"""More packets than the socket of a child holds."""


class Audience(Protocol):
    def said(self, run: Run | None, stream: str, level: int, text: str) -> None: ...
    def progressed(self, run: Run, fraction: float, note: str) -> None: ...


class Talk:
    """What is said, as long as its speaker has not said too much. No run: nobody knows whose words these are."""

    def __init__(self, audience: Audience, limit: int) -> None:
        self.said = 0
        self._audience = audience
        self._limit = limit

    def wanted(self, run: Run | None) -> bool:
        return (run or self).said <= self._limit

    def say(self, run: Run | None, stream: str, level: int, text: str) -> None:
        if self.wanted(run):
            (run or self).said += len(text.encode()) + LINE_COST
            if self.wanted(run):
                self._audience.said(run, stream, level, text)
            else:
                notice = f"here the log of this job ends, at jobs.max_log_bytes ({self._limit})"
                self._audience.said(run, stream, logging.WARNING, notice)


class Speakers(Protocol):
    @property
    def queue(self) -> Iterable[Run]: ...
    @property
    def running(self) -> list[Run]: ...


class Ear:
    def __init__(self, packets: socket.socket, output: int, child: Speakers, audience: Audience, limit: int) -> None:
        self._packets = packets
        self._child = child
        self._audience = audience
        self._talk = Talk(audience, limit)
        self._output = Output(output, self._output_wanted, self._output_said)
        self.finish = self._output.finish
        """A run is over: what comes now is no part of its last line."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(packets, self._hear, _A_FEW)

    def listen(self) -> None:
        """Before a report is taken: to all that was said before it."""
        self._hear(_ALL)

    def read(self) -> None:
        """Likewise, all that was written."""
        self._output.drain()

    def close(self) -> None:
        """The child is dead, and these were its last words."""
        self.listen()
        self.turn_away()
        self._output.close()

    def turn_away(self) -> None:
        """Before its socket is closed, unless it is."""
        if self._packets.fileno() >= 0:
            self._loop.remove_reader(self._packets)

    def _whose(self, job_id: int) -> Run | None:
        """It may be in the queue still, where the report of the one before is on its way.

        What nobody put a name on (0) is of the one that runs, where it is only one.
        """
        if job_id:
            return next((run for run in self._child.queue if run.id == job_id), None)
        running = self._child.running
        return running[0] if len(running) == 1 else None

    def _output_wanted(self) -> bool:
        return self._talk.wanted(self._whose(0))

    def _output_said(self, line: str) -> None:
        self._talk.say(self._whose(0), OUTPUT, logging.INFO, line)

    def _hear(self, most: int) -> None:
        for _ in range(most):
            try:
                packet = self._packets.recv(TICKET_LIMIT, socket.MSG_DONTWAIT)
            except OSError:
                return
            if not packet:
                self.turn_away()
                return
            with suppress(ValueError, struct.error):  # a job wrote into what isn't its own
                self._take(whole(packet))

    def _take(self, frame: Frame) -> None:
        run = self._whose(frame.job_id)
        match frame.type, json.loads(frame.meta):
            case Type.LOG, [str(stream), int(level)]:
                self._talk.say(run, stream, level, frame.body.decode())
            case Type.PROGRESS, [float(fraction), str(note)] if run is not None and 0 <= fraction <= 1:
                self._audience.progressed(run, fraction, note)
