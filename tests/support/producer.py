"""What a producer's side of AMQP needs in a test: publish as any plain client would, and read queues."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Self

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from pamqp.commands import Queue
from yarl import URL

PATIENCE = 20
"""Seconds to wait for messages."""


class Producer:
    """`async with Producer(url) as producer`: one connection with confirms."""

    def __init__(self, url: str, namespace: str = "jobs") -> None:
        self._url = url
        self._namespace = namespace

    async def __aenter__(self) -> Self:
        self._connection = await aio_pika.connect(URL(self._url))
        self.channel = await self._connection.channel(on_return_raises=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    async def submit(
        self,
        kind: str | None,
        payload: Any,
        key: str | None,
        *,
        queue: str = "default",
        headers: Mapping[str, Any] | None = None,
        **properties: Any,
    ) -> None:
        """Publish a job in the plain form; `payload` is anything that JSON can say."""
        body = json.dumps(payload).encode()
        properties = {"content_type": "application/json", "type": kind, "message_id": key} | properties
        await self.publish(body, queue=queue, headers=headers, **properties)

    async def publish(
        self,
        body: bytes,
        *,
        queue: str = "default",
        headers: Mapping[str, Any] | None = None,
        **properties: Any,
    ) -> None:
        """Publish these very bytes and properties, and wait for the broker's confirm."""
        message = aio_pika.Message(body, headers=dict(headers or {}), delivery_mode=2, **properties)
        exchange = await self.channel.get_exchange(self._namespace, ensure=False)
        await exchange.publish(message, routing_key=queue, mandatory=True)

    async def take(self, queue: str, count: int = 1) -> list[AbstractIncomingMessage]:
        """Wait for `count` messages of a queue and take them away. `queue` is its full name."""
        taken: list[AbstractIncomingMessage] = []
        async with asyncio.timeout(PATIENCE), self._connection.channel() as channel:
            await channel.set_qos(prefetch_count=count)
            source = await channel.get_queue(queue, ensure=False)
            async with source.iterator() as messages:
                async for message in messages:
                    await message.ack()
                    taken.append(message)
                    if len(taken) == count:
                        break
        return taken

    async def dead_letters(self, count: int = 1, queue: str = "default") -> list[AbstractIncomingMessage]:
        """Wait for `count` dead letters of a work queue and take them away."""
        return await self.take(f"{self._namespace}.{queue}.dead", count)

    async def depth(self, queue: str) -> int:
        """Return how many messages are ready in a queue, by its full name."""
        return (await self._look(queue)).message_count or 0

    async def consumers(self, queue: str) -> int:
        """Return how many consumers a queue has."""
        return (await self._look(queue)).consumer_count or 0

    async def _look(self, queue: str) -> Queue.DeclareOk:
        async with self._connection.channel() as channel:
            return (await channel.declare_queue(queue, passive=True)).declaration_result
