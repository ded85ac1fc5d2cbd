"""From settings to the values that the rooms are made with: nothing here starts anything, but the store's opening."""

import socket
from collections.abc import Iterable

from config.logging import LEVELS
from config.settings import Settings
from consumer.broker.connection import BrokerConfig, Files
from consumer.broker.endpoints import Login, urls
from consumer.cgroup import Cgroup
from consumer.core.ack_timeout import RunTimes
from consumer.core.admission import AdmissionRules
from consumer.core.burials import BurialRules
from consumer.core.cooling import CoolingRules
from consumer.core.decode import DecodeRules
from consumer.core.delay import Ladder
from consumer.core.policy import Catalogue, Overridden
from consumer.core.ports import Store
from consumer.core.rooms import Rules
from consumer.core.topology import Topology, build
from consumer.overriding import overrides_of, ratios_of
from consumer.store.grouped import Observe, unobserved
from consumer.store.open import open_store, system_clock
from consumer.sweeper import SweepRules
from consumer.worker.config import PoolConfig

clock = system_clock


def topology_of(settings: Settings) -> Topology:
    chosen = settings.topology
    ladder = Ladder(settings.namespace, chosen.delay_tick_ms, chosen.delay_levels, chosen.version)
    return build(settings.namespace, settings.queue, ladder, chosen.delivery_limit)


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
    container = Cgroup()
    return PoolConfig(
        processes=settings.pool.processes or container.cpus(),
        look_ahead=settings.pool.look_ahead,
        io_processes=settings.pool.io_processes or 1,
        io_concurrency=settings.pool.io_concurrency,
        io_stall=settings.pool.io_stall_seconds,
        modules=settings.jobs.modules,
        path=(settings.jobs.path,) if settings.jobs.path else (),
        memory_limit=settings.pool.memory_limit,
        container_memory=container.memory(),
        cpu_limit=settings.pool.cpu_limit_seconds,
        open_files=settings.pool.open_files,
        keep_leftovers=settings.pool.leftovers == "keep",
        result_limit=settings.jobs.max_result_bytes,
        log_limit=settings.jobs.max_log_bytes,
        log_level=LEVELS[settings.log.level],
        max_depth=settings.message.max_depth,
        kill_grace=settings.pool.kill_grace_seconds,
        recycle_jobs=settings.pool.recycle_jobs,
        recycle_age=settings.pool.recycle_age_seconds,
        recycle_memory=settings.pool.recycle_memory,
        start_timeout=settings.pool.start_timeout_seconds,
    )


async def store_of(settings: Settings, observe: Observe = unobserved) -> Store:
    return await open_store(
        settings.store.url.get_secret_value(),
        prepared_statements=settings.store.prepared_statements,
        observe=observe,
        clock=clock,
        origin=f"{settings.namespace}.{settings.queue}",
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


def cooling_of(settings: Settings) -> CoolingRules:
    cooldown = settings.cooldown
    return CoolingRules(
        first=round(cooldown.first_seconds * 1000),
        longest=round(cooldown.longest_seconds * 1000),
        window=cooldown.window,
        ratio=cooldown.failure_ratio,
        ratios=ratios_of(settings.kinds),
    )


def burials_of(settings: Settings) -> BurialRules:
    letters = settings.dead_letters
    return BurialRules(
        ratio=letters.breaker_ratio,
        least=letters.breaker_least,
        window=letters.breaker_window_seconds * 1000,
        first=round(letters.pause_seconds * 1000),
        longest=round(letters.longest_pause_seconds * 1000),
    )


def run_times_of(settings: Settings, catalogue: Catalogue, kinds: Iterable[str]) -> RunTimes:
    """How long jobs of these kinds may run, by what the settings make of their policies."""
    known = Overridden(catalogue, overrides_of(settings.kinds))
    timeouts = {kind: policy.timeout for kind in kinds if (policy := known.policy(kind)) is not None}
    return RunTimes(timeouts, 1 + settings.pool.look_ahead, settings.pool.kill_grace_seconds)


def sweep_of(settings: Settings, kinds: frozenset[str]) -> SweepRules:
    return SweepRules(
        every=settings.store.sweep_seconds,
        grace=settings.store.stuck_grace_seconds * 1000,
        retention=settings.store.retention_seconds * 1000,
        kinds=kinds,
        decode=rules_of(settings, "").decode,
    )
