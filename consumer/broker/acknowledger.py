"""Acks and nacks of one channel, those of one turn of the event loop in one write.

The client spends a queue item, three objects and a write on each ack, which is a tenth of what a job costs us.
Both frames are of fixed form (AMQP 0-9-1, sections 1.8.3.13 and 1.8.3.16 of the reference), so they are packed here.
"""

import asyncio
import struct

from aiormq.abc import AbstractChannel, ChannelFrame

METHOD, BASIC, ACK, NACK, FRAME_END = 1, 60, 80, 120, 0xCE
REQUEUE = 2
_FRAME = struct.Struct(">BHIHHQBB")
_PAYLOAD_SIZE = 13


class Acknowledger:
    """Lives and dies with its channel, as delivery tags do."""

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel
        self._write_queue: asyncio.Queue[ChannelFrame] = channel.write_queue  # type: ignore[attr-defined]
        self._frames: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def ack(self, tag: int) -> bool:
        """False where the channel is gone: the broker will deliver the message again."""
        return self._send(ACK, tag, 0)

    def release(self, tag: int) -> bool:
        """Give it back to the queue, likewise."""
        return self._send(NACK, tag, REQUEUE)

    def _send(self, method: int, tag: int, bits: int) -> bool:
        if self._channel.is_closed:
            return False
        if not self._frames:
            self._loop.call_soon(self.flush)
        number = self._channel.number
        self._frames.append(_FRAME.pack(METHOD, number, _PAYLOAD_SIZE, BASIC, method, tag, bits, FRAME_END))
        return True

    def flush(self) -> None:
        """Write what was collected; nothing where there is nothing."""
        if not self._frames:
            return
        payload = b"".join(self._frames)
        self._frames.clear()
        if self._channel.is_closed:
            return
        frame = ChannelFrame(payload=payload, should_close=False)
        try:
            self._write_queue.put_nowait(frame)
        except asyncio.QueueFull:
            # held on to, since the loop doesn't
            self._writing = self._loop.create_task(self._write_queue.put(frame))
