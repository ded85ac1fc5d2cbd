"""`consumer topology migrate`: from the queues of another version to those that the settings name.

Every step can be done again, so a run that was interrupted is completed by the next one. Nothing is deleted.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from config.settings import Settings
from consumer.broker.connection import connect, explained, open_channel
from consumer.broker.declare import Mode, apply
from consumer.broker.depth import Depth
from consumer.broker.line import Line
from consumer.broker.management import manage
from consumer.broker.mover import Mover
from consumer.broker.publisher import AmqpPublisher
from consumer.broker.strays import bring_home
from consumer.core.delay import Ladder
from consumer.core.errors import BrokerUnavailable, SettingsError
from consumer.core.findings import listed
from consumer.core.management_rules import shown
from consumer.core.migration import Migration, Move
from consumer.core.parcels import Copier
from consumer.core.topology import Topology
from consumer.wiring import broker_of, topology_of

LOOKS, BETWEEN_LOOKS = 8, 0.25
"""How patiently to wait, in seconds, for consumers to go: to newer brokers also somebody who has just gone, or who
takes single messages, is one for a moment."""
ROUNDS = 3
"""How often an old queue is looked at again: a daemon of the old version that comes back binds it again."""


@dataclass(slots=True)
class Report:
    """`steps` were done, or would be; `remains` says why it isn't finished yet."""

    dry_run: bool
    steps: list[tuple[str, str]] = field(default_factory=list)
    remains: list[str] = field(default_factory=list)
    deletable: list[str] = field(default_factory=list)

    def did(self, step: str, detail: str) -> None:
        self.steps.append((step, detail))


async def migrate(settings: Settings, version: int, *, dry_run: bool) -> Report:
    """`version` is the one to leave."""
    new = topology_of(settings)
    if version == new.ladder.version:
        raise SettingsError(f"topology.version is {version}: set it to the version to go to, and migrate from another")
    old = Topology(new.namespace, new.queue, replace(new.ladder, version=version))
    config = broker_of(settings)
    connection = await connect(config, "migrate")
    try:
        with explained("the migration was interrupted, run it again"):
            return await _Run(settings, connection, old, new, Report(dry_run)).all()
    finally:
        await connection.hang_up()


class _Run:
    def __init__(self, settings: Settings, connection: Line, old: Topology, new: Topology, report: Report) -> None:
        self._settings = settings
        self._connection = connection
        self._mover = Mover(connection)
        self._old = old
        self._new = new
        self._report = report

    async def all(self) -> Report:
        before = await self._calm()
        if not before:
            queues = f"'{self._old.work_queue}' or '{self._old.dead_queue}'"
            raise SettingsError(f"there is nothing to migrate: the broker has no queue {queues}")
        plan = Migration(self._old, self._new, await self._ladders())
        await self._route(plan)
        for move in plan.moves:
            if move.source in before:
                await self._drain(move, before[move.source])
        for ladder in plan.ladders:
            await self._bring_home(ladder)
        if not self._report.dry_run:
            await self._verify(plan)
        return self._report

    async def _calm(self) -> dict[str, Depth]:
        """The old queues when nobody consumes from them any more, or after the last look."""
        for _ in range(LOOKS):
            depths = await self._depths()
            if not any(depth.consumers for depth in depths.values()):
                break
            await asyncio.sleep(BETWEEN_LOOKS)
        return depths

    async def _depths(self) -> dict[str, Depth]:
        names = (self._old.work_queue, self._old.dead_queue)
        return {name: depth for name in names if (depth := await self._mover.depth(name)) is not None}

    async def _ladders(self) -> list[Ladder]:
        newest = max(self._old.ladder.version, self._new.ladder.version)
        others = sorted(set(range(1, newest + 1)) - {self._new.ladder.version})
        found = [await self._mover.ladder(replace(self._new.ladder, version=version)) for version in others]
        return [ladder for ladder in found if ladder is not None]

    async def _route(self, plan: Migration) -> None:
        self._report.did(
            "declare and bind", f"{self._new.work_queue}, {self._new.dead_queue} and {self._new.ladder.prefix}"
        )
        if not self._report.dry_run:
            await apply(self._connection, self._new, Mode.DECLARE)
        for binding in plan.binds:
            self._report.did("bind", shown(binding))
            if not self._report.dry_run:
                await self._mover.bind(binding)
        for binding in plan.unbinds:
            self._report.did("unbind", shown(binding))
            if not self._report.dry_run:
                await self._mover.unbind(binding)

    async def _drain(self, move: Move, depth: Depth) -> None:
        """What has consumers is left to them: they are alive, and the new queue may have none yet."""
        route = f"from {move.source} to {move.destination}"
        if depth.consumers:
            self._report.did("leave", f"{depth.ready} messages of {move.source} to its consumers ({depth.consumers})")
        elif self._report.dry_run:
            self._report.did("move", f"{depth.ready} messages {route}")
        else:
            self._report.did("move", f"{await self._moved(move)} messages {route}")

    async def _moved(self, move: Move) -> int:
        """Only as many as were there at each look: a queue that is bound again would never be empty."""
        moved = 0
        async with _publisher(self._settings) as publisher:
            for _ in range(ROUNDS):
                depth = await self._mover.depth(move.source)
                if depth is None or not depth.ready:
                    break
                moved += await self._mover.move(
                    move.source, depth.ready, lambda message: publisher.publish(move.parcel(message))
                )
        return moved

    async def _bring_home(self, ladder: Ladder) -> None:
        """Strays of an older ladder: no daemon of this version looks there."""
        depth = await self._mover.depth(ladder.stray)
        if depth is None or not depth.ready:
            return
        if self._report.dry_run:
            self._report.did("look through", f"{depth.ready} messages of {ladder.stray}, for those of our queue")
            return
        copier = Copier(self._new, "migrate")
        async with _publisher(self._settings) as publisher:
            found = await bring_home(
                self._connection, ladder, self._new.queue, lambda message: publisher.publish(copier.home(message))
            )
        self._report.did("move", f"{found.home} messages from {ladder.stray} to {self._new.work_queue}")
        if found.failure:
            self._report.remains.append(f"messages of {ladder.stray} can't be published: {found.failure}")

    async def _verify(self, plan: Migration) -> None:
        version = self._old.ladder.version
        after = await self._calm()
        for name, depth in after.items():
            if depth.consumers:
                self._report.remains.append(
                    f"queue '{name}' has consumers ({depth.consumers}): end the daemons of version {version}, "
                    "then run this again"
                )
            elif depth.ready:
                self._report.remains.append(f"queue '{name}' holds {depth.ready} messages: run this again")
        await self._verify_bindings()
        self._report.deletable += [f"queue {name}" for name in after]
        await self._verify_ladder(plan)

    async def _verify_ladder(self, plan: Migration) -> None:
        for ladder in plan.ladders:
            if ladder.version != self._old.ladder.version:
                continue
            rungs = [await self._mover.depth(ladder.level(k)) for k in range(ladder.levels)]
            if waiting := sum(rung.ready for rung in rungs if rung is not None):
                self._report.did(
                    "await",
                    f"{waiting} messages in {ladder.prefix}: those of this queue come to {self._new.work_queue}",
                )
            self._report.deletable.append(
                f"queues and exchanges {ladder.prefix}.*, once they are empty and no daemon of another queue uses them"
            )

    async def _verify_bindings(self) -> None:
        """Whoever can't see bindings has at least unbound them."""
        url = self._settings.broker.management_url
        if not url:
            self._report.did("trust", "that nobody has bound the old queues again: broker.management_url is not set")
            return
        try:
            managed = await manage(broker_of(self._settings), url, self._old)
        except BrokerUnavailable as error:
            self._report.remains.append(f"bindings can't be seen: {error}")
            return
        old = {self._old.work_queue, self._old.dead_queue}
        again = [shown(binding) for binding in managed.bindings if binding.source and binding.destination in old]
        if again:
            version = self._old.ladder.version
            self._report.remains.append(
                f"bound again: {listed(sorted(again))}; end the daemons of version {version}, then run this again"
            )


@asynccontextmanager
async def _publisher(settings: Settings) -> AsyncIterator[AmqpPublisher]:
    """On a connection of its own, so that one which the broker holds back can't hold back acks."""
    publisher = AmqpPublisher(settings.broker.publish_timeout_seconds)
    connection = await connect(broker_of(settings), "migrate, publishing")
    try:
        publisher.attach(await open_channel(connection, confirms=True))
        yield publisher
    finally:
        await connection.hang_up()
