"""The composition root: the one file that knows every concrete class."""

import asyncio
import gc
import os
import random
import socket
import time
from itertools import cycle
from uuid import uuid4

import structlog
from prometheus_client import CollectorRegistry

from config.settings import Settings
from consumer.broker.connection import BrokerConfig, Files
from consumer.broker.declare import Mode
from consumer.broker.endpoints import Login, urls
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.session import Session, open_session
from consumer.checkpoints import checkpoints
from consumer.core.admission import AdmissionRules
from consumer.core.decode import DecodeRules
from consumer.core.delay import Ladder
from consumer.core.errors import StoreUnavailable
from consumer.core.parcels import Copier
from consumer.core.ports import Store
from consumer.core.retry import wait_seconds
from consumer.core.rooms import Rooms, Rules
from consumer.core.streak import LOST
from consumer.core.topology import Topology, build
from consumer.cpus import available_cpus
from consumer.holding import HoldingStore
from consumer.http.server import Health, ProbeServer
from consumer.journal import SettlementJournal
from consumer.leases import LeaseKeeper
from consumer.metrics import Metrics
from consumer.processor import Processor
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
from consumer.store.grouped import Observe, unobserved
from consumer.store.open import open_store
from consumer.supervisor import Supervisor
from consumer.sweeper import Sweeper, SweepRules
from consumer.turns import KeyedTurns
from consumer.watch import Watch
from consumer.worker.config import PoolConfig
from consumer.worker.pool import Pool

PREFETCH_PER_PLACE = 2
"""One delivery in the place, and one that waits for it or for its commit, so that no place waits for the broker."""


def clock() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def topology_of(settings: Settings) -> Topology:
    ladder = Ladder(settings.namespace, settings.topology.delay_tick_ms, settings.topology.delay_levels)
    return build(settings.namespace, settings.queue, ladder, settings.topology.delivery_limit)


def broker_of(settings: Settings) -> BrokerConfig:
    broker = settings.broker
    login = Login(broker.user, broker.password.get_secret_value(), broker.vhost)
    first, *others = urls(broker.url.get_secret_value(), broker.hosts, login, tls=broker.tls)
    return BrokerConfig(
        url=first,
        others=tuple(others),
        name=f"consumer {socket.gethostname()}",
        files=Files(broker.user_file, broker.password_file, broker.ca_file, broker.cert_file, broker.key_file),
        heartbeat=broker.heartbeat_seconds,
        connect_timeout=broker.connect_timeout_seconds,
    )


def pool_of(settings: Settings) -> PoolConfig:
    return PoolConfig(
        processes=settings.pool.processes or available_cpus(),
        look_ahead=settings.pool.look_ahead,
        modules=settings.jobs.modules,
        path=(settings.jobs.path,) if settings.jobs.path else (),
        memory_limit=settings.pool.memory_limit,
        result_limit=settings.jobs.max_result_bytes,
        max_depth=settings.message.max_depth,
        kill_grace=settings.pool.kill_grace_seconds,
        recycle_jobs=settings.pool.recycle_jobs,
        start_timeout=settings.pool.start_timeout_seconds,
    )


async def store_of(settings: Settings, observe: Observe = unobserved) -> Store:
    return await open_store(
        settings.store.url.get_secret_value(),
        prepared_statements=settings.store.prepared_statements,
        observe=observe,
        clock=clock,
    )


def rules_of(settings: Settings, owner: str) -> Rules:
    message = settings.message
    return Rules(
        owner=owner,
        decode=DecodeRules(
            max_bytes=message.max_bytes,
            max_depth=message.max_depth,
            missing_key=message.missing_key,
            default_kind=message.default_kind or None,
            kind_pointer=message.kind_pointer or None,
            key_pointer=message.key_pointer or None,
            payload_pointer=message.payload_pointer or None,
        ),
        admission=AdmissionRules(
            tick=settings.topology.delay_tick_ms,
            unknown_kind_grace=settings.jobs.unknown_kind_grace_seconds * 1000,
        ),
        lease=settings.store.lease_seconds * 1000,
        crash_limit=settings.jobs.crash_limit,
    )


def sweep_of(settings: Settings, kinds: frozenset[str]) -> SweepRules:
    return SweepRules(
        every=settings.store.sweep_seconds,
        grace=settings.store.stuck_grace_seconds * 1000,
        retention=settings.store.retention_seconds * 1000,
        kinds=kinds,
        decode=rules_of(settings, "").decode,
    )


async def run(settings: Settings) -> None:
    """Run the daemon until it is told to stop. Raises ConsumerError for what only a person can mend."""
    signals = Signals()
    health, metrics = Health(), Metrics(CollectorRegistry(), settings.queue)
    health.last_tick = time.time()
    probes = ProbeServer(settings.http.host, settings.http.port, health, metrics.registry)
    try:
        async with in_background(tick(health, metrics)):
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


async def _run_with(store: Store, settings: Settings, signals: Signals, metrics: Metrics, health: Health) -> None:
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
    topology, life = topology_of(settings), Life(metrics, health)
    pool = await signals.unless_told(Pool.start(pool_of(settings), metrics, clock))
    if pool is None:
        return
    kinds = frozenset(pool.schemas)
    metrics.expect(kinds)
    publisher = AmqpPublisher(settings.broker.publish_timeout_seconds, metrics.publish_observed)
    leases = LeaseKeeper(store, settings.store.lease_seconds * 1000)
    journal = SettlementJournal(metrics, kinds, clock)
    prefetch = settings.broker.prefetch or pool.figures().slots * PREFETCH_PER_PLACE

    nodes = cycle(broker_of(settings).nodes)

    async def open_one() -> Session:
        return await open_session(next(nodes), topology, Mode(settings.topology.mode), publisher)

    async def consume(session: Session, careful: bool) -> None:
        await session.consume(in_hand.receive, 1 if careful else prefetch, clock)

    supervisor = Supervisor(open_one, consume, store.probe, pool, life, random.random)
    holding = HoldingStore(store, supervisor.trip, random.random)
    rooms = Rooms(
        store=holding,
        slots=pool,
        catalogue=pool,
        publisher=publisher,
        copier=Copier(topology, owner),
        turns=KeyedTurns(),
        leases=leases,
        journal=journal,
        intake=supervisor,
        checkpoints=checkpoints(settings.faults.crash_at, settings.faults.crash_after),
    )
    in_hand = InHand(Processor(rooms, rules_of(settings, owner), clock, random.random), journal.received)
    metrics.show_pool(pool.figures, prefetch)
    _calm_the_garbage_collector()
    watch = Watch(topology, metrics, lambda: supervisor.session, settings.broker.heartbeat_seconds)
    sweeper = Sweeper(store, publisher, topology, metrics, sweep_of(settings, kinds), random.random)
    async with in_background(leases.keep(), watch.keep(), sweeper.keep(), pool_shown(pool, health)):
        drain = Drain(settings.shutdown.drain_seconds, holding.give_up)
        await consume_until_told_to_stop(supervisor, pool, in_hand, life, signals, drain)
