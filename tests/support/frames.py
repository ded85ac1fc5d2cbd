"""A message that a broker passes on and a client can't decode, written frame by frame."""

import struct

from aio_pika import Channel, connect
from aiormq.abc import ChannelFrame
from pamqp import commands, frame

END = b"\xce"
HEADER, BODY = 2, 3
CONTENT_TYPE, DELIVERY_MODE, MESSAGE_ID, TIMESTAMP, TYPE = 1 << 15, 1 << 12, 1 << 7, 1 << 6, 1 << 5
PERSISTENT = b"\x02"
BEYOND_ANY_DATE = struct.pack(">Q", 2**63)


async def publish_undecodable(url: str, kind: str, key: str, body: bytes) -> None:
    """Publish a job to the queue `default` with a timestamp of 2^63 seconds."""
    async with await connect(url) as connection:
        channel = connection.channel(publisher_confirms=False)
        await channel.initialize()
        assert isinstance(channel, Channel)
        below = await channel.get_underlay_channel()
        publish = commands.Basic.Publish(exchange="jobs", routing_key="default")
        payload = frame.marshal(publish, below.number) + b"".join(
            _frame(kind_of_frame, below.number, content)
            for kind_of_frame, content in ((HEADER, _header(kind, key, body)), (BODY, body))
        )
        await below.connection.write_queue.put(ChannelFrame(payload=payload, should_close=False))
        await channel.close()


def _header(kind: str, key: str, body: bytes) -> bytes:
    flags = CONTENT_TYPE | DELIVERY_MODE | MESSAGE_ID | TIMESTAMP | TYPE
    properties = _short("application/json") + PERSISTENT + _short(key) + BEYOND_ANY_DATE + _short(kind)
    return struct.pack(">HHQH", 60, 0, len(body), flags) + properties


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _frame(kind: int, channel: int, content: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(content)) + content + END
