"""Looks at every part that the daemon needs, each whatever the others say; the rules are in core/."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from config.settings import Settings
from consumer.broker.connection import connect
from consumer.broker.look import look
from consumer.broker.management import manage
from consumer.core import amqp_rules, management_rules
from consumer.core.ack_timeout import too_long
from consumer.core.errors import BrokerUnavailable, ConsumerError
from consumer.core.facts import Managed, Seen
from consumer.core.findings import Finding, Severity
from consumer.core.store_rules import of_store
from consumer.core.topology import Topology
from consumer.operations import closing_store
from consumer.store.durability import durability
from consumer.wiring import broker_of, clock, pool_of, run_times_of, topology_of
from consumer.worker.pool import Pool

CONSUMER_TIMEOUT = "consumer-timeout"


@dataclass(frozen=True, slots=True)
class Part:
    """`detail` is what there is, or why it couldn't be looked at."""

    name: str
    detail: str
    findings: tuple[Finding, ...] = ()
    failed: bool = False

    @property
    def well(self) -> bool:
        return not self.failed and not any(finding.severity is Severity.FAULT for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Broker:
    """What we know of it; `managed` is None where the management API shows nothing, for the reason in `unseen`."""

    topology: Topology
    declaring: bool
    place: str
    seen: Seen
    managed: Managed | None = None
    unseen: Finding = management_rules.WITHOUT

    def findings(self) -> tuple[Finding, ...]:
        """About the broker itself."""
        more = management_rules.of_managed_broker(self.managed) if self.managed else ()
        return (*amqp_rules.of_broker(self.seen), *more)

    def topology_findings(self) -> tuple[Finding, ...]:
        found = amqp_rules.of_topology(self.seen, self.topology, declaring=self.declaring)
        if self.managed is None:
            return (*found, self.unseen)
        return (*found, *management_rules.of_managed_topology(self.managed, self.seen, self.topology))

    def ack_timeout(self, setting: float) -> float:
        """Seconds: what a policy says, or else the setting."""
        states = self.managed.queues if self.managed else ()
        by_policy = [
            (state.definition or {}).get(CONSUMER_TIMEOUT) for state in states if state.name == self.topology.work_queue
        ]
        return next((value / 1000 for value in by_policy if isinstance(value, int)), setting)


async def look_at_broker(settings: Settings) -> Broker:
    """Raise ConsumerError where it can't be reached."""
    config, topology = broker_of(settings), topology_of(settings)
    declaring = settings.topology.mode == "declare"
    connection = await connect(config, "doctor")
    try:
        seen = await look(connection, topology, _older(topology), declaring=declaring)
    finally:
        await connection.hang_up()
    broker = Broker(topology, declaring, config.place, seen)
    if not settings.broker.management_url:
        return broker
    try:
        return replace(broker, managed=await manage(config, settings.broker.management_url, topology))
    except BrokerUnavailable as error:
        return replace(broker, unseen=management_rules.unreachable(str(error)))


def _older(topology: Topology) -> Sequence[Topology]:
    return [
        Topology(topology.namespace, topology.queue, replace(topology.ladder, version=version))
        for version in range(1, topology.ladder.version)
    ]


async def examine(settings: Settings) -> list[Part]:
    try:
        broker: Broker | ConsumerError = await look_at_broker(settings)
    except ConsumerError as error:
        broker = error
    timeout = float(settings.broker.ack_timeout_seconds)
    if isinstance(broker, Broker):
        timeout = broker.ack_timeout(timeout)
    return [
        await _or_failed("job modules", lambda: _modules(settings, timeout)),
        await _or_failed("store", lambda: _store(settings)),
        *_broker(broker),
    ]


async def _or_failed(name: str, part: Callable[[], Awaitable[Part]]) -> Part:
    try:
        return await part()
    except ConsumerError as error:
        return Part(name, str(error), failed=True)


class _Nobody:
    """A look at the modules counts nothing."""

    def child_exited(self, sort: str, reason: str) -> None: ...
    def said(self, kind: str, key: str, stream: str, text: str, *, attempt: int = 0, level: int = 0) -> None: ...
    def progressed(self, kind: str, key: str, fraction: float, note: str) -> None: ...


async def _modules(settings: Settings, ack_timeout: float) -> Part:
    pool = await Pool.start(pool_of(settings), _Nobody(), clock)
    try:
        times = run_times_of(settings, pool, pool.schemas)
        return Part("job modules", ", ".join(sorted(pool.schemas)), tuple(too_long(times, ack_timeout)))
    finally:
        await pool.stop(0)


def _broker(broker: Broker | ConsumerError) -> list[Part]:
    if isinstance(broker, ConsumerError):
        return [Part(name, str(broker), failed=True) for name in ("broker", "topology")]
    there = f"{broker.seen.product} {broker.seen.version} at {broker.place}"
    return [
        Part("broker", there, broker.findings()),
        Part("topology", f"version {broker.topology.ladder.version}", broker.topology_findings()),
    ]


async def _store(settings: Settings) -> Part:
    async with closing_store(settings) as store:
        await store.probe()
    found = await durability(settings.store.url.get_secret_value())
    return Part("store", "can be written to", tuple(of_store(found)))
