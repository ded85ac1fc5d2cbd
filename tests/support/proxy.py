"""A TCP proxy on loopback whose connections a test can cut, freeze or refuse."""

import asyncio
import ssl
from typing import Self
from urllib.parse import urlsplit

CHUNK = 65_536


class Proxy:
    """Stands before the server of `url`; `async with Proxy(url) as proxy` and then use `proxy.url`.

    With `tls` it speaks TLS to clients, as a load balancer would.
    """

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._upstream = urlsplit(url)
        self._tls = tls
        self._to_server = _open_gate()
        self._to_client = _open_gate()
        self._refusing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    @property
    def url(self) -> str:
        """The server's URL, through the proxy."""
        credentials, at, _ = self._upstream.netloc.rpartition("@")
        return self._upstream._replace(netloc=f"{credentials}{at}127.0.0.1:{self.port}").geturl()

    @property
    def port(self) -> int:
        number: int = self._server.sockets[0].getsockname()[1]
        return number

    @property
    def connections(self) -> int:
        return len(self._writers) // 2

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()

    def stall(self, *, to_server: bool = True, to_client: bool = True) -> None:
        """Hold back what is sent that way from now on; the connections stay open, as behind a dead switch."""
        if to_server:
            self._to_server.clear()
        if to_client:
            self._to_client.clear()

    def flow(self) -> None:
        """Deliver what was held back, and what follows."""
        self._to_server.set()
        self._to_client.set()

    def refuse(self) -> None:
        """Close new connections at once."""
        self._refusing = True

    def accept(self) -> None:
        self._refusing = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        try:
            server = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
        except OSError:
            writer.transport.abort()
            return
        self._start(reader, server[1], self._to_server)
        self._start(server[0], writer, self._to_client)

    def _start(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event) -> None:
        self._writers.add(sink)
        pump = asyncio.create_task(self._pump(source, sink, gate))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event) -> None:
        try:
            while data := await source.read(CHUNK):
                await gate.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            sink.transport.abort()
        finally:
            sink.close()
            self._writers.discard(sink)


def _open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate
