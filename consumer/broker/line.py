"""A connection that we can hang up: the client waits for its peer when it closes, also for one that is silent."""

import asyncio
from typing import Any

import aio_pika
from aiormq.connection import TCPTransportFactory, TLSTransportFactory, TransportFactory
from yarl import URL

CLOSE_TIMEOUT = 5.0
HANG_UP_TIMEOUT = 1.0


class _Wire(TransportFactory):
    """Opens the socket as the client would, and keeps hold of it."""

    def __init__(self) -> None:
        self._writer: asyncio.StreamWriter | None = None

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opener = TLSTransportFactory() if url.scheme == "amqps" else TCPTransportFactory()
        reader, self._writer = await opener.create(url, **kwargs)
        return reader, self._writer

    def cut(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


class Line(aio_pika.Connection):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._wire = self.kwargs["transport_factory"] = _Wire()

    async def hang_up(self) -> None:
        """Close it politely, or cut the wire where that takes too long. Never raises."""
        if self.is_closed:
            return
        closing = asyncio.ensure_future(self.close())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT)
        if not closing.done():
            self._wire.cut()
            await asyncio.wait({closing}, timeout=HANG_UP_TIMEOUT)
