"""The composition root: the one file that knows every concrete class."""

import asyncio
import gc
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable
from itertools import cycle
from uuid import uuid4

import structlog
from prometheus_client import CollectorRegistry

from config.settings import Settings
from consumer.broker.declare import Mode
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import Session, open_session
from consumer.burials import Burials
from consumer.cancelling import Canceller
from consumer.checkpoints import checkpoints
from consumer.cooling import SharedCooling
from consumer.core.ack_timeout import too_long
from consumer.core.cooling import Cooling
from consumer.core.errors import SettingsError, StoreUnavailable
from consumer.core.parcels import Copier
from consumer.core.policy import Overridden
from consumer.core.ports import Store
from consumer.core.retry import wait_seconds
from consumer.core.rooms import COPIES_AT_ONCE, Rooms
from consumer.core.streak import LOST
from consumer.holding import HoldingStore
from consumer.http.server import Health, ProbeServer
from consumer.journal import SettlementJournal
from consumer.leases import LeaseKeeper
from consumer.metrics import Metrics
from consumer.observing import PoolObserver
from consumer.overriding import overrides_of
from consumer.processor import Processor
from consumer.progress import Progress
from consumer.relay import Relay
from consumer.runner import (
    Drain,
    InHand,
    Life,
    Signals,
    consume_until_told_to_stop,
    in_background,
    pool_shown,
    tick,
)
from consumer.strays import Strays
from consumer.supervisor import Supervisor
from consumer.sweeper import Sweeper
from consumer.turns import KeyedTurns
from consumer.watch import Watch
from consumer.wiring import (
    broker_of,
    burials_of,
    clock,
    cooling_of,
    pool_of,
    rules_of,
    run_times_of,
    store_of,
    sweep_of,
    topology_of,
)
from consumer.worker.pool import Pool

PREFETCH_PER_PLACE = 2
"""One delivery in the place, and one that waits for it or for its commit, so that no place waits for the broker."""
MOST_PREFETCH = 65_535
"""AMQP has no larger number for it."""


async def run(settings: Settings) -> None:
    """Run the daemon until it is told to stop. Raises ConsumerError for what only a person can mend."""
    signals = Signals()
    health, metrics = Health(), Metrics(CollectorRegistry(), settings.queue)
    health.last_tick = time.time()
    probes = ProbeServer(settings.http.host, settings.http.port, health, metrics.registry)
    try:
        async with in_background(lambda: tick(health, metrics)):
            store = await _first_store(settings, metrics, signals)
            if store is None:
                return
            try:
                await _run_with(store, settings, signals, metrics, health)
            finally:
                await store.close()
    finally:
        probes.close()


def _calm_the_garbage_collector() -> None:
    """What was made at the start stays, and a job makes few cycles: looking for them every 700 objects, as Python
    does by default, costs a tenth of what a job costs us."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


async def _first_store(settings: Settings, metrics: Metrics, signals: Signals) -> Store | None:
    """Wait for the store instead of exiting; None when we are told to stop meanwhile."""
    failures = 0
    while not signals.first.is_set():
        try:
            return await signals.unless_told(store_of(settings, metrics.store_observed))
        except StoreUnavailable as error:
            failures += 1
            wait = wait_seconds(LOST, failures, None, random.random)
            structlog.get_logger("consumer.app").warning(
                "the store is away", error=str(error), next_try_in_s=round(wait, 2)
            )
            await signals.unless_told(asyncio.sleep(wait))
    return None


def _check_overrides(settings: Settings, kinds: frozenset[str]) -> None:
    """A name that was mistyped would change nothing, and nobody would know."""
    for kind in settings.kinds.keys() - kinds:
        raise SettingsError(
            f"setting kinds.{kind}: no job module declares a kind '{kind}'; there are {', '.join(sorted(kinds))}"
        )


def _warn_of_the_ack_timeout(settings: Settings, pool: Pool) -> None:
    """Before the first long job ends a session, not after it."""
    for finding in too_long(run_times_of(settings, pool, pool.schemas), settings.broker.ack_timeout_seconds):
        structlog.get_logger("consumer.app").warning("the broker's ack timeout is short", detail=str(finding))


async def _first_pool(settings: Settings, observer: PoolObserver, metrics: Metrics, signals: Signals) -> Pool | None:
    """With its children up; None when we are told to stop meanwhile."""
    pool = await signals.unless_told(Pool.start(pool_of(settings), observer, clock))
    if pool is not None:
        kinds = frozenset(pool.schemas)
        _check_overrides(settings, kinds)
        _warn_of_the_ack_timeout(settings, pool)
        metrics.expect(kinds)
    return pool


def _opener(settings: Settings, publisher: AmqpPublisher, strays: Strays) -> Callable[[], Awaitable[Session]]:
    """Of one session after the other, each at the next node."""
    nodes, topology = cycle(broker_of(settings).nodes), topology_of(settings)

    async def open_one() -> Session:
        session = await open_session(next(nodes), topology, Mode(settings.topology.mode), publisher)
        strays.opened(session)
        return session

    return open_one


async def _run_with(store: Store, settings: Settings, signals: Signals, metrics: Metrics, health: Health) -> None:
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
    topology, life = topology_of(settings), Life(metrics, health)
    copier = Copier(topology, owner)
    leases = LeaseKeeper(store, settings.store.lease_seconds * 1000)
    progress = Progress(store, leases)
    pool = await _first_pool(settings, PoolObserver(metrics, progress), metrics, signals)
    if pool is None:
        return
    kinds = frozenset(pool.schemas)
    publisher = AmqpPublisher(settings.broker.publish_timeout_seconds, metrics.publish_observed)
    journal = SettlementJournal(metrics, kinds, clock)
    prefetch = settings.broker.prefetch or min(pool.figures().slots * PREFETCH_PER_PLACE, MOST_PREFETCH)
    strays = Strays(publisher, copier, random.random)

    async def consume(session: Session, careful: bool) -> None:
        await session.consume(in_hand.receive, 1 if careful else prefetch, clock)

    supervisor = Supervisor(_opener(settings, publisher, strays), consume, store.probe, pool, life, random.random)
    cooling = SharedCooling(Cooling(cooling_of(settings), random.random), store, metrics, clock)
    relay = Relay(store, publisher, topology, clock, random.random)
    holding = HoldingStore(store, supervisor.trip, random.random, relay.kick)
    rooms = Rooms(
        store=holding,
        slots=pool,
        catalogue=Overridden(pool, overrides_of(settings.kinds)),
        publisher=publisher,
        copier=copier,
        copying=asyncio.Semaphore(COPIES_AT_ONCE),
        turns=KeyedTurns(),
        leases=leases,
        journal=journal,
        intake=supervisor,
        cooldowns=cooling,
        burials=Burials(burials_of(settings), supervisor, metrics),
        checkpoints=checkpoints(settings.faults.crash_at, settings.faults.crash_after),
    )
    in_hand = InHand(Processor(rooms, rules_of(settings, owner), clock, random.random), journal.received)
    metrics.show_pool(pool.figures, prefetch)
    _calm_the_garbage_collector()
    watch = Watch(topology, metrics, lambda: supervisor.session, settings.broker.heartbeat_seconds)
    sweeper = Sweeper(store, publisher, topology, metrics, sweep_of(settings, kinds), random.random)
    helpers = (leases, watch, strays, sweeper, cooling, progress, relay, Canceller(store, leases, pool.cancel))
    async with in_background(lambda: pool_shown(pool, health), *(helper.keep for helper in helpers)):
        drain = Drain(settings.shutdown.drain_seconds, holding.give_up)
        await consume_until_told_to_stop(supervisor, pool, in_hand, life, signals, drain)
