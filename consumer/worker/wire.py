"""The language between the parent and a child: tickets from the parent, and frames on a stream in both directions.

A frame is a small binary header, a meta text and raw bytes (a body on the way in, a result on the way out),
which the parent never decodes. A ticket is one packet that holds the frame of a job, or the frame without its
body where that is long; the body follows on the stream. Standard library only: both sides use it.
"""

import re
import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

HEADER = struct.Struct("!IIBQ")
"""Length of the meta text, length of the body, type, job id."""
USAGE = struct.Struct("!QQdQ")
"""Started and finished in epoch ms, CPU seconds, peak memory in bytes: the meta of a success."""
SMALL = 8 * 1024
"""A buffer that costs nothing to allocate."""
META_LIMIT = 256 * 1024


TICKET_LIMIT = 32 * 1024


MARK = re.compile(rb"\0over ([0-9]{1,19})\0")
"""In the pipe of the output: here that of a run ends."""
PART_OF_A_MARK = re.compile(rb"\0(?:o(?:v(?:e(?:r(?: [0-9]{0,19})?)?)?)?)?\Z")


class Type(IntEnum):
    JOB = 1  # on a ticket, complete
    LONG_JOB = 2  # on a ticket, its body follows
    BODY = 3
    READY = 4
    SUCCEEDED = 5
    FAILED = 6
    OUT_OF_MEMORY = 7
    LOG = 8  # a packet of the child on the tickets' socket: a piece of what a job printed or logged
    PROGRESS = 9  # likewise
    FOLLOW_UPS = 10  # before the success of the same job
    CANCEL = 11  # from the parent: on the stream of an io child, among the tickets of a cpu child
    SPOKE = 12  # before the report of a job that said something: read those packets first
    LEAVING = 13  # a job left something behind: from an io child, that it should get no more; a cpu child goes now
    WROTE = 14  # before a report too: read what is in the pipe of the output first, up to the mark of that job


class Frame(NamedTuple):
    type: int
    job_id: int
    meta: bytes
    body: bytes


class WireError(Exception):
    """What came over the stream is no frame, or one beyond the limit: its sender can't be trusted any more."""


def head(kind: Type, job_id: int, meta: bytes = b"", body_length: int = 0) -> bytes:
    """Everything of a frame before its body."""
    return HEADER.pack(len(meta), body_length, kind, job_id) + meta


def mark(job_id: int) -> bytes:
    return b"\0over %d\0" % job_id


def whole(packet: bytes) -> Frame:
    """The frame that a ticket is."""
    meta_length, _, kind, job_id = HEADER.unpack_from(packet)
    body_start = HEADER.size + meta_length
    return Frame(kind, job_id, packet[HEADER.size : body_start], packet[body_start:])


class Parser:
    """Cuts a stream into frames as it comes in. Each byte is joined at most twice, however long the frame."""

    def __init__(self, body_limit: int) -> None:
        self._body_limit = body_limit
        self._chunks: list[bytes] = []
        self._held = 0
        self._wanted = HEADER.size

    @property
    def missing(self) -> int:
        """How much to ask for: the rest of a long frame, or as much as a small buffer takes."""
        return max(self._wanted - self._held, SMALL)

    def feed(self, data: bytes) -> Iterable[Frame]:
        """The frames that are complete; those before what is none, too."""
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._wanted:
            return ()
        return self._cut(data if self._held == len(data) else b"".join(self._chunks))

    def _cut(self, buffer: bytes) -> Iterator[Frame]:
        start, end = 0, len(buffer)
        self._wanted = HEADER.size
        while end - start >= HEADER.size:
            meta_length, body_length, kind, job_id = HEADER.unpack_from(buffer, start)
            if meta_length > META_LIMIT or body_length > self._body_limit:
                raise WireError(f"a frame of {meta_length + body_length} bytes")
            body_start = start + HEADER.size + meta_length
            frame_end = body_start + body_length
            if frame_end > end:
                self._wanted = frame_end - start
                break
            yield Frame(kind, job_id, buffer[body_start - meta_length : body_start], buffer[body_start:frame_end])
            start = frame_end
        self._chunks = [buffer[start:]] if start < end else []
        self._held = end - start
