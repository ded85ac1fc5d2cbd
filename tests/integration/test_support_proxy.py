import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.support.proxy import Proxy


@asynccontextmanager
async def echo_behind_a_proxy() -> AsyncIterator[Proxy]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Proxy(f"echo://user:word@127.0.0.1:{port}/path") as proxy:
        yield proxy
    server.close()


async def connect(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = int(proxy.url.rpartition(":")[2].removesuffix("/path"))
    return await asyncio.open_connection("127.0.0.1", port)


async def test_bytes_pass_both_ways_and_the_url_keeps_its_other_parts() -> None:
    async with echo_behind_a_proxy() as proxy:
        assert proxy.url.startswith("echo://user:word@127.0.0.1:")
        assert proxy.url.endswith("/path")
        reader, writer = await connect(proxy)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        assert proxy.connections == 1
        writer.close()


async def test_a_cut_resets_the_connection() -> None:
    async with echo_behind_a_proxy() as proxy:
        reader, writer = await connect(proxy)
        writer.write(b"hello")
        await reader.readexactly(5)
        proxy.cut()
        assert await reader.read() == b""
        writer.close()


async def test_a_stall_holds_bytes_back_until_they_flow() -> None:
    async with echo_behind_a_proxy() as proxy:
        reader, writer = await connect(proxy)
        proxy.stall()
        writer.write(b"hello")
        answer = asyncio.create_task(reader.readexactly(5))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(answer), 0.1)
        proxy.flow()
        assert await answer == b"hello"
        writer.close()


async def test_a_refused_connection_is_closed_at_once() -> None:
    async with echo_behind_a_proxy() as proxy:
        proxy.refuse()
        reader, writer = await connect(proxy)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        proxy.accept()
        reader, writer = await connect(proxy)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
