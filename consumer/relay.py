"""Publishes the follow-ups that results left in the outbox, each until the broker has confirmed it.

A crash at any point leaves a row, which is sent again by whoever looks next: the same message under the same key, so
that it runs once.
"""

import asyncio
from collections.abc import Sequence

import structlog

from consumer.core.errors import PublishFailed, StoreUnavailable
from consumer.core.outbox import Outgoing
from consumer.core.policy import RetryPolicy
from consumer.core.ports import Chance, Clock, Publisher, Store
from consumer.core.relay import parcel
from consumer.core.retry import wait_seconds
from consumer.core.topology import Topology
from consumer.waiting import told

AT_ONCE = 50
LEASE = 30_000
"""Milliseconds after which a follow-up that was taken and not sent is sent again."""
EVERY = 2.0
"""Seconds between two looks for what a crash left behind, or for what is due only now."""
BETWEEN_TRIES = RetryPolicy(base=0.2, cap=5.0)
NOBODY_TAKES_IT = frozenset({"returned", "nacked"})
"""What the broker says of one message, and not of itself: its queue doesn't exist, or is full."""


class Relay:
    def __init__(self, store: Store, publisher: Publisher, topology: Topology, clock: Clock, chance: Chance) -> None:
        self._store = store
        self._publisher = publisher
        self._topology = topology
        self._clock = clock
        self._chance = chance
        self._kicked = asyncio.Event()
        self._confirmed: list[int] = []
        self._log = structlog.get_logger("consumer.relay")

    def kick(self) -> None:
        """There are new follow-ups: don't wait for the next look."""
        self._kicked.set()

    async def keep(self) -> None:
        """Send until cancelled."""
        while True:
            self._kicked.clear()
            await self.send_all()
            await told(self._kicked, EVERY)

    async def send_all(self) -> None:
        """Send what is there. A store that is away ends it; what was confirmed by then is forgotten first next time."""
        try:
            await self._forget()
            while batch := await self._store.outbox(AT_ONCE, LEASE):
                await self._send(batch)
                await self._forget()
        except StoreUnavailable as error:
            # The pipeline has said so already; this would say it every two seconds.
            self._log.debug("follow-ups wait for the store", error=str(error))

    async def _send(self, batch: Sequence[Outgoing]) -> None:
        sent = await asyncio.gather(*map(self._is_sent, batch))
        self._confirmed += [outgoing.id for outgoing, confirmed in zip(batch, sent, strict=True) if confirmed]

    async def _forget(self) -> None:
        if self._confirmed:
            await self._store.sent(self._confirmed)
            self._confirmed.clear()

    async def _is_sent(self, outgoing: Outgoing) -> bool:
        """Wait for a broker that is away. What it doesn't take is left for later, and holds up nothing else."""
        failures = 0
        while True:
            try:
                await self._publisher.publish(parcel(outgoing, self._topology, self._clock()))
            except PublishFailed as failure:
                if failure.result in NOBODY_TAKES_IT:
                    self._complain(outgoing, str(failure))
                    return False
                failures += 1
                await asyncio.sleep(wait_seconds(BETWEEN_TRIES, failures, None, self._chance))
            except Exception as error:  # noqa: BLE001 - what can't even be written to the wire stops no other
                self._complain(outgoing, f"{type(error).__name__}, which is a bug of ours")
                return False
            else:
                return True

    def _complain(self, outgoing: Outgoing, error: str) -> None:
        self._log.error(
            "follow-up not sent, tried again later",
            kind=outgoing.kind,
            key=outgoing.key,
            queue=outgoing.queue or self._topology.queue,
            error=error,
        )
