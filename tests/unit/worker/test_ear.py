import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from consumer.core.job import Job
from consumer.core.ports import Work
from consumer.worker.catalogue import Sort
from consumer.worker.ear import Ear
from consumer.worker.line_cutter import LINE_COST
from consumer.worker.output import pipe
from consumer.worker.run import Run
from consumer.worker.wire import Type, head, mark

ENDS = "here the log of this job ends, at jobs.max_log_bytes (1000)"


@dataclass
class Child:
    """Its runs, what it says, and who heard it."""

    words: socket.socket
    writing: int
    queue: list[Run] = field(default_factory=list)
    at_once: int = 9
    said_: list[tuple[int, str, str]] = field(default_factory=list)
    marks: list[tuple[int, float, str]] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def running(self) -> list[Run]:
        return self.queue[: self.at_once]

    def runs(self, *numbers: int) -> None:
        self.queue = [Run(n, Work(Job("kind", "key", b""), 1, 1.0), Sort.CPU, lambda: None) for n in numbers]

    def say(self, job_id: int, text: str) -> None:
        body = text.encode()
        self.words.send(head(Type.LOG, job_id, json.dumps(["stdout", logging.INFO]).encode(), len(body)) + body)

    def said(self, run: Run | None, stream: str, level: int, text: str) -> None:
        self.said_.append((run.id if run else 0, stream, text))
        self.heard.set()

    def progressed(self, run: Run, fraction: float, note: str) -> None:
        self.marks.append((run.id, fraction, note))


@asynccontextmanager
async def heard_child(limit: int = 1000) -> AsyncIterator[tuple[Child, Ear]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, writing = pipe()
    child = Child(theirs, writing)
    with ours, theirs:
        ear = Ear(ours, reading, child, child, limit)
        yield child, ear
        ear.close()
        os.close(writing)


async def test_what_is_said_belongs_to_the_job_whose_number_it_bears() -> None:
    async with heard_child() as (child, ear):
        child.runs(1, 2)
        child.say(2, "second")
        child.say(1, "first")
        child.say(3, "not there any more")
        child.say(0, "one of two")
        ear.listen()
        assert child.said_ == [
            (2, "stdout", "second"),
            (1, "stdout", "first"),
            (0, "stdout", "not there any more"),
            (0, "stdout", "one of two"),
        ]


async def test_a_job_may_speak_before_the_report_of_the_one_before_it_is_taken() -> None:
    async with heard_child() as (child, ear):
        child.at_once = 1
        child.runs(1, 2)
        child.say(2, "early")
        ear.listen()
        assert child.said_ == [(2, "stdout", "early")]


async def test_what_nobody_put_a_number_on_belongs_to_the_only_one_that_runs() -> None:
    async with heard_child() as (child, ear):
        child.runs(7)
        child.say(0, "a thread")
        os.write(child.writing, b"a program\nwithout an end")
        ear.listen()
        ear.read(7)
        ear.finish(7)
        child.runs(8)
        os.write(child.writing, b"the next")
        ear.read(8)
        ear.finish(8)
        assert child.said_ == [
            (7, "stdout", "a thread"),
            (7, "output", "a program"),
            (7, "output", "without an end"),
            (8, "output", "the next"),
        ]


async def test_a_mark_divides_the_output_of_jobs_whose_reports_are_on_their_way() -> None:
    async with heard_child() as (child, ear):
        child.at_once = 1
        child.runs(1, 2, 3, 4)
        written = b"a\nb" + mark(1) + b"c" + mark(2) + mark(3) + b"d\n"
        os.write(child.writing, written)
        ear.read(1)
        assert child.said_ == [(1, "output", "a"), (1, "output", "b"), (2, "output", "c"), (4, "output", "d")]
        for number in (1, 2, 3):
            ear.finish(number)
            child.queue = child.queue[1:]
        os.write(child.writing, b"e\n")
        ear.read(4)
        assert child.said_[-1] == (4, "output", "e")


async def test_a_mark_that_comes_in_pieces_is_a_mark() -> None:
    async with heard_child() as (child, ear):
        child.at_once = 1
        child.runs(123, 2)
        for byte in b"a" + mark(123) + b"b\0\0 over 7\n":
            os.write(child.writing, bytes([byte]))
            ear.read(0)
        assert child.said_ == [(123, "output", "a"), (2, "output", "b\0\0 over 7")]


async def test_output_is_heard_while_the_job_runs() -> None:
    async with heard_child() as (child, _):
        child.runs(1)
        os.write(child.writing, "ä".encode()[:1])
        await asyncio.sleep(0)
        os.write(child.writing, "ä".encode()[1:] + b"\xff\n")
        async with asyncio.timeout(10):
            await child.heard.wait()
        assert child.said_ == [(1, "output", "ä\\xff")]


async def test_each_job_has_its_own_limit_and_nobody_else_is_silenced() -> None:
    async with heard_child() as (child, ear):
        child.runs(1, 2)
        for _ in range(30):
            child.say(1, "x" * 36)
        child.say(2, "y")
        ear.listen()
        mine = [text for number, _, text in child.said_ if number == 1]
        assert mine == ["x" * 36] * (1000 // (LINE_COST + 36)) + [ENDS]
        assert child.said_[-1] == (2, "stdout", "y")


async def test_a_limit_of_nothing_leaves_one_notice() -> None:
    async with heard_child(limit=0) as (child, ear):
        child.runs(1)
        for _ in range(3):
            os.write(child.writing, b"x\n")
            ear.read(1)
        assert [text for _, _, text in child.said_] == [ENDS.replace("1000", "0")]


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"\0",
        head(Type.LOG, 1, b"[", 0),
        head(Type.LOG, 1, b"[" * 20_000, 0),
        head(Type.LOG, 1, b'["x"]', 0),
        head(Type.LOG, 1, b'["x", "y"]', 0),
        head(Type.LOG, 1, b'["x", 20]', 1) + b"\xff",
        head(Type.PROGRESS, 1, b'[2.0, ""]'),
        head(Type.PROGRESS, 1, b'[NaN, ""]'),
        head(Type.PROGRESS, 1, b'["", 0.5]'),
        head(Type.PROGRESS, 9, b'[0.5, ""]'),
        head(Type.SUCCEEDED, 1, b"[]"),
    ],
)
async def test_what_a_job_wrote_into_what_is_not_its_own_is_not_listened_to(packet: bytes) -> None:
    async with heard_child() as (child, ear):
        child.runs(1)
        child.words.send(packet)
        child.words.send(head(Type.PROGRESS, 1, b'[0.5, "half"]'))
        ear.listen()
        assert (child.said_, child.marks) == ([], [(1, 0.5, "half")] if packet else [])
