"""The language between the parent and a child: frames on a stream, and tickets beside it.

A frame is a small binary header, a JSON text about the job and raw bytes (a body on the way in, a result on
the way out). The parent never decodes the raw bytes. Standard library only: both sides use it.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

HEADER = struct.Struct("!IIBQ")
"""Length of the meta text, length of the body, type, job id."""
TICKET = struct.Struct("!Q")
META_LIMIT = 256 * 1024


class Type(IntEnum):
    JOB = 1
    READY = 2
    STARTED = 3
    SUCCEEDED = 4
    FAILED = 5
    OUT_OF_MEMORY = 6


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


class Parser:
    """Cuts a stream into frames as it comes in. Each byte is joined at most twice, however long the frame."""

    def __init__(self, body_limit: int) -> None:
        self._body_limit = body_limit
        self._chunks: list[bytes] = []
        self._held = 0
        self._wanted = HEADER.size

    def feed(self, data: bytes) -> list[Frame]:
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._wanted:
            return []
        return self._cut(data if self._held == len(data) else b"".join(self._chunks))

    def _cut(self, buffer: bytes) -> list[Frame]:
        frames, start, end = [], 0, len(buffer)
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
            frames.append(
                Frame(kind, job_id, buffer[body_start - meta_length : body_start], buffer[body_start:frame_end])
            )
            start = frame_end
        self._chunks = [buffer[start:]] if start < end else []
        self._held = end - start
        return frames
