import contextvars
import json
import logging
import socket
import threading
from collections.abc import Iterator

import pytest

from consumer.worker.line_cutter import LINE_COST
from consumer.worker.voice import Voice
from consumer.worker.wire import Type, whole

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def heard(ends: Ends) -> list[tuple[int, str]]:
    """Job and text of all lines that were said."""
    frames = []
    while True:
        try:
            frames.append(whole(ends[1].recv(65536)))
        except BlockingIOError:
            return [(frame.job_id, frame.body.decode()) for frame in frames if frame.type == Type.LOG]


def test_each_context_speaks_for_its_own_job_and_a_thread_without_one_for_the_latest(ends: Ends) -> None:
    voice = Voice(ends[0], 10_000)

    def say(text: str) -> None:
        voice.speaker.log("logger", logging.INFO, text)

    def job(number: int) -> contextvars.Context:
        context = contextvars.copy_context()
        context.run(voice.begin, number)
        return context

    contextvars.Context().run(say, "before any job")
    first, second = job(1), job(2)
    first.run(say, "first")
    second.run(say, "second")
    thread = threading.Thread(target=say, args=["thread"])
    thread.start()
    thread.join()
    assert heard(ends) == [(0, "before any job"), (1, "first"), (2, "second"), (2, "thread")]


def test_nobody_says_much_more_than_the_limit(ends: Ends) -> None:
    speaker = Voice(ends[0], 3 * (LINE_COST + 10)).begin(1)
    for number in range(100):
        speaker.log("logger", logging.INFO, f"{number:010}")
        speaker.write("stdout", b"x" * 1000)
    assert len(heard(ends)) == 4, "one more than may be, so that the parent knows"


def test_a_parent_that_does_not_listen_holds_up_an_io_child_for_a_moment_only(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.worker.voice._PATIENCE_MS", 1)
    ends[0].setblocking(False)
    speaker = Voice(ends[0], 10_000_000).begin(1)
    for _ in range(1000):
        speaker.log("logger", logging.INFO, "x" * 1000)
    assert 0 < len(heard(ends)) < 1000


def test_a_closed_socket_is_no_error_of_the_job(ends: Ends) -> None:
    speaker = Voice(ends[0], 10_000).begin(1)
    ends[0].close()
    speaker.log("logger", logging.INFO, "x")
    speaker.progressed(0.5, "half")


def test_a_line_that_was_begun_is_finished_with_the_run(ends: Ends) -> None:
    speaker = Voice(ends[0], 10_000).begin(1)
    speaker.write("stdout", b"a\nb")
    speaker.write("stderr", b"c")
    assert heard(ends) == [(1, "a")]
    speaker.finish()
    assert heard(ends) == [(1, "b"), (1, "c")]


def test_progress_crosses_as_it_is(ends: Ends) -> None:
    Voice(ends[0], 0).begin(7).progressed(0.25, "ä")
    frame = whole(ends[1].recv(65536))
    assert (frame.type, frame.job_id, json.loads(frame.meta)) == (Type.PROGRESS, 7, [0.25, "ä"])
