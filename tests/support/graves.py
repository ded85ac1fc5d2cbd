"""Dead letters without the jobs that died: the daemon's own copies, confirmed in the queue and noted in the index."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aio_pika
from pydantic import SecretStr

from config.settings import Settings
from consumer.core.claim import Run
from consumer.core.disposition import DeadLetter
from consumer.core.job import Fault, Job, Message
from consumer.core.letter_index import LetterIndex, Wanted
from consumer.core.letters import buried, id_for
from consumer.core.parcels import Copier
from consumer.core.verdict import Verdict
from consumer.operations import closing_store, publishing
from consumer.wiring import clock, topology_of
from schemas.codes import Code
from tests.support.producer import Producer
from tests.support.settings import LEVELS

QUEUE = "jobs.default.dead"
AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Looked:
    """A letter in the queue as a later consumer sees it; how often the broker says that it was handed out before."""

    id: str
    key: str
    handed_out: int


class Graves:
    """`async with Graves(amqp_url, store_url) as graves`: the queues are declared and empty."""

    def __init__(self, amqp_url: str, store_url: str) -> None:
        self.settings = _settings(amqp_url, store_url)
        self._producer = Producer(amqp_url)

    async def __aenter__(self) -> Self:
        self._publishing = publishing(self.settings)
        self._publisher = await self._publishing.__aenter__()
        self._store = closing_store(self.settings)
        self.store = await self._store.__aenter__()
        await self._producer.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._producer.__aexit__()
        await self._store.__aexit__(kind, error, traceback)
        await self._publishing.__aexit__(kind, error, traceback)

    @property
    def index(self) -> LetterIndex:
        return self.store.letters

    async def bury(
        self,
        keys: Sequence[str],
        kind: str = "echo",
        payload: Any = 1,
        code: Code = Code.REJECTED,
        error: str = "no account {key}",
        generation: int = 0,
    ) -> list[str]:
        """Return their ids, in the order of the keys, which is that of the queue."""
        ids: list[str] = []
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            faults = [Fault(code, "app.Odd", error.format(key=key), "Traceback …") for key in some]
            body = json.dumps(payload).encode()
            one_by_one = [
                self._bury(key, kind, body, fault, generation) for key, fault in zip(some, faults, strict=True)
            ]
            ids += await asyncio.gather(*one_by_one)
        return ids

    async def _bury(self, key: str, kind: str, body: bytes, fault: Fault, generation: int) -> str:
        now, topology = clock(), topology_of(self.settings)
        job = Job(kind, key, body, generation=generation, fingerprint=body)
        verdict = Verdict(DeadLetter(fault), kind, key, job, Run(1, 1, generation))
        message = Message(body, content_type="application/json", type=kind, message_id=key)
        letter_id = id_for(verdict, lambda: 0.5)
        copy = Copier(topology, "pod-1").dead(message, fault, 1, now, letter_id, generation)
        await self._publisher.publish(copy)
        await self.store.bury(buried(copy.message, topology, verdict, fault, now))
        return letter_id

    async def depth(self) -> int:
        return await self._producer.depth(QUEUE)

    async def listed(self) -> int:
        return await self.index.count(Wanted("default"))

    async def work(self) -> int:
        return await self._producer.depth("jobs.default")

    async def dig_up(self, count: int) -> list[Looked]:
        """Take all away, in the order of the queue."""
        return [_looked(message) for message in await self._producer.take(QUEUE, count)]


def _settings(amqp_url: str, store_url: str) -> Settings:
    """The defaults, but for where broker and store are, and the shorter ladder that all tests have."""
    chosen = Settings()
    broker = chosen.broker.model_copy(update={"url": SecretStr(amqp_url)})
    store = chosen.store.model_copy(update={"url": SecretStr(store_url)})
    topology = chosen.topology.model_copy(update={"delay_levels": LEVELS})
    return chosen.model_copy(update={"broker": broker, "store": store, "topology": topology})


def _looked(message: aio_pika.abc.AbstractIncomingMessage) -> Looked:
    counts = [message.headers.get(name) for name in ("x-delivery-count", "x-acquired-count")]
    handed_out = max(count for count in (*counts, int(bool(message.redelivered))) if isinstance(count, int))
    return Looked(str(message.headers["consumer-dead-id"]), str(message.message_id), handed_out)
