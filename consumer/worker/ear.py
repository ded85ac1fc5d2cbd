"""Hears what the jobs of a child say, without letting them hold up the loop or fill the log."""

import asyncio
import json
import logging
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from consumer.worker.line_cutter import LINE_COST, LineCutter
from consumer.worker.output import Output
from consumer.worker.run import Run
from consumer.worker.wire import MARK, PART_OF_A_MARK, TICKET_LIMIT, Frame, Type, whole

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


class ImportEar:
    """What job modules print while the zygote imports them: it is of no job."""

    def __init__(self, output: int, audience: Audience, limit: int) -> None:
        self._talk = Talk(audience, limit)
        self._cutter = LineCutter()
        self._output = Output(output, lambda: self._talk.wanted(None), self._heard)

    def finish(self) -> None:
        """They are imported."""
        self._output.drain()
        self._say(self._cutter.finish())

    def close(self) -> None:
        self._output.close()
        self._say(self._cutter.finish())

    def _heard(self, data: bytes) -> None:
        self._say(self._cutter.feed(data))

    def _say(self, lines: list[str]) -> None:
        for line in lines:
            self._talk.say(None, OUTPUT, logging.INFO, line)


class Speakers(Protocol):
    @property
    def queue(self) -> Iterable[Run]: ...
    @property
    def running(self) -> list[Run]: ...


class Ear:
    """Packets say whose they are. Output doesn't: a cpu child ends that of a run with a mark, if there is any left."""

    def __init__(self, packets: socket.socket, output: int, child: Speakers, audience: Audience, limit: int) -> None:
        self._packets = packets
        self._child = child
        self._audience = audience
        self._talk = Talk(audience, limit)
        self._output = Output(output, self._output_wanted, self._output_heard)
        self._cutter = LineCutter()
        self._held = b""
        self._marked: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(packets, self._hear, _A_FEW)

    def listen(self) -> None:
        """Before a report is taken: to all that was said before it."""
        self._hear(_ALL)

    def read(self, job_id: int) -> None:
        """Likewise, all that was written."""
        if job_id not in self._marked:
            self._output.drain()

    def finish(self, job_id: int) -> None:
        """The run is over: what comes now is no part of its last line."""
        if job_id in self._marked:
            self._marked.remove(job_id)
        else:
            self._end_line(self._writer())

    def close(self) -> None:
        """The child is dead, and these were its last words."""
        self.listen()
        self.turn_away()
        self._output.close()
        self._written(self._writer(), self._held)
        self._end_line(self._writer())

    def turn_away(self) -> None:
        """Before its socket is closed, unless it is."""
        if self._packets.fileno() >= 0:
            self._loop.remove_reader(self._packets)

    # output

    def _output_wanted(self) -> bool:
        return self._talk.wanted(self._writer())

    def _output_heard(self, data: bytes) -> None:
        *runs, rest = MARK.split(self._held + data)
        for written, job_id in zip(runs[::2], runs[1::2], strict=True):
            run = self._run(int(job_id))
            self._written(run, written)
            self._end_line(run)
            if run is not None:
                self._marked.add(run.id)
        begun = PART_OF_A_MARK.search(rest)
        self._held = begun.group() if begun else b""
        self._written(self._writer(), rest.removesuffix(self._held))

    def _written(self, run: Run | None, data: bytes) -> None:
        if self._talk.wanted(run):
            for line in self._cutter.feed(data):
                self._talk.say(run, OUTPUT, logging.INFO, line)

    def _end_line(self, run: Run | None) -> None:
        for line in self._cutter.finish():
            self._talk.say(run, OUTPUT, logging.INFO, line)

    def _writer(self) -> Run | None:
        """The run that its child is at, where it is only one. The reports of those before may be on their way."""
        if len(self._child.running) != 1:
            return None
        writer = None
        for run in self._child.queue:
            if run.id in self._marked:
                writer = None
            elif writer is None:
                writer = run
        return writer

    # packets

    def _run(self, job_id: int) -> Run | None:
        return next((run for run in self._child.queue if run.id == job_id), None)

    def _hear(self, most: int) -> None:
        for _ in range(most):
            try:
                packet = self._packets.recv(TICKET_LIMIT, socket.MSG_DONTWAIT)
            except OSError:
                return
            if not packet:
                self.turn_away()
                return
            with suppress(ValueError, RecursionError, struct.error):  # a job wrote into what isn't its own
                self._take(whole(packet))

    def _take(self, frame: Frame) -> None:
        """0 is nobody's number: of a thread that outlived its job, say."""
        run = self._run(frame.job_id) if frame.job_id else self._writer()
        match frame.type, json.loads(frame.meta):
            case Type.LOG, [str(stream), int(level)]:
                self._talk.say(run, stream, level, frame.body.decode())
            case Type.PROGRESS, [float(fraction), str(note)] if run is not None and 0 <= fraction <= 1:
                self._audience.progressed(run, fraction, note)
