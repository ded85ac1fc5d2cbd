"""Two daemons on a real broker and a real database under load, while faults are injected; then a check of the ledger.

    make faults SECONDS=60 SEED=7 JOBS=20000

The seed chooses the jobs, the faults, their order and their targets; the machine chooses what they meet.
"""

import argparse
import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random
from urllib.parse import urlsplit

import aio_pika

from tests.faults.damage import Damage, Replica
from tests.faults.ledger import GUARD, Ledger, Report
from tests.support.cluster import Cluster
from tests.support.pools import gone
from tests.support.postgres import Postgres
from tests.support.producer import Producer
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.settings import settings
from tests.support.waiting import eventually

REPLICAS = ("one", "two")
IMPATIENT = {
    "BROKER__HEARTBEAT_SECONDS": "2",
    "BROKER__CONNECT_TIMEOUT_SECONDS": "3",
    "BROKER__PUBLISH_TIMEOUT_SECONDS": "2",
    "STORE__LEASE_SECONDS": "4",
    "JOBS__CRASH_LIMIT": "1000",
    "JOBS__MODULES": "enduring",
    "TOPOLOGY__DELIVERY_LIMIT": "1000000",
    "BROKER__PREFETCH": "50",
    "POOL__LOOK_AHEAD": "8",
    "SHUTDOWN__DRAIN_SECONDS": "5",
    "LOG__LEVEL": "warning",
}
"""Short times, so that much happens; limits out of reach, since nobody is guilty here."""


@dataclass(frozen=True)
class Plan:
    """`pause`: the shortest and the longest time between two faults, in seconds.

    `follow_ups`: of each asking job. Those that a killed daemon had taken to send come half a minute later, at least.
    """

    seconds: float
    jobs: int
    seed: int
    pause: tuple[float, float] = (0.2, 1.6)
    patience: float = 100
    follow_ups: int = 0


async def run(
    plan: Plan, rabbit: Rabbit | Cluster, postgres: Postgres, say: Callable[[str], object]
) -> tuple[Report, Damage]:
    ledger = Ledger(Random(plan.seed), plan.jobs, plan.follow_ups)
    wrong: list[str] = []
    began = time.monotonic()
    broker, store = rabbit.vhost(), postgres.create_database()
    urls = rabbit.urls(broker) if isinstance(rabbit, Cluster) else [broker]

    def noted(what: str) -> None:
        say(f"{time.monotonic() - began:6.1f} s  {what}")

    async with AsyncExitStack() as stack:
        proxies: dict[str, list[Proxy]] = {"broker": [], "database": []}
        replicas: list[Replica] = []
        for name in REPLICAS:
            nodes = [await stack.enter_async_context(Proxy(url)) for url in urls]
            database = await stack.enter_async_context(Proxy(store))
            proxies["broker"] += nodes
            proxies["database"].append(database)
            hosts = ",".join(urlsplit(node.url).netloc.rpartition("@")[2] for node in nodes)
            chosen = settings(nodes[0].url, database.url, BROKER__HOSTS=hosts, **IMPATIENT)
            replicas.append(Replica(f"daemon {name}", chosen, wrong))
        for replica in replicas:
            await replica.start()
            stack.push_async_callback(replica.end, signal.SIGKILL)
            await replica.daemon.ready()
        postgres.psql(GUARD, store)
        damage = Damage(Random(plan.seed), replicas, rabbit, postgres, proxies, noted)
        publishing = asyncio.create_task(ledger.publish(urls, plan.seconds))
        await damage.rage(plan.seconds, plan.pause)
        noted("all faults are over")
        await publishing
        noted("all jobs are published")
        await _finished(ledger, store, rabbit, broker, plan.patience, wrong)
        noted("all jobs are done")
        codes = [await replica.end(signal.SIGTERM) for replica in replicas]
        wrong += [f"a daemon that was told to stop ended with {code}" for code in codes if code]
        await gone([pid for replica in replicas for pid in replica.seen], within=10)
        report = await ledger.check(store, await _letters(rabbit, broker))
    report.wrong += wrong
    return report, damage


async def _finished(
    ledger: Ledger, store: str, rabbit: Rabbit | Cluster, broker: str, patience: float, wrong: list[str]
) -> None:
    async def so() -> bool:
        return await ledger.unfinished(store) == 0

    async def empty() -> bool:
        return not _left(rabbit, broker)

    try:
        await eventually(so, "all jobs are done", within=patience)
        await eventually(empty, "all queues are empty", within=patience)
    except TimeoutError as error:
        wrong.append(f"{error}: {await ledger.unfinished(store)} jobs unfinished, queues {_left(rabbit, broker)}")


def _depths(rabbit: Rabbit | Cluster, broker: str) -> dict[str, int]:
    lines = rabbit.ctl("list_queues", "-p", broker.rpartition("/")[2], "name", "messages").splitlines()
    return {name: int(count) for name, count in (line.split() for line in lines if "\t" in line) if count.isdigit()}


def _left(rabbit: Rabbit | Cluster, broker: str) -> dict[str, int]:
    """What is in the work queue and the delay queues."""
    return {name: count for name, count in _depths(rabbit, broker).items() if count and not name.endswith(".dead")}


async def _letters(rabbit: Rabbit | Cluster, broker: str) -> list[aio_pika.abc.AbstractIncomingMessage]:
    count = _depths(rabbit, broker).get("jobs.default.dead", 0)
    async with Producer(broker) as producer:
        return await producer.dead_letters(count) if count else []


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--jobs", type=int, default=5_000)
    parser.add_argument("--cluster", action="store_true")
    given = parser.parse_args()
    plan = Plan(given.seconds, given.jobs, given.seed, follow_ups=4)
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)  # the producer's client, which loses its broker too
    with Cluster() if given.cluster else Rabbit() as rabbit, Postgres(durable=True) as postgres:
        report, damage = asyncio.run(run(plan, rabbit, postgres, say))
    say(f"seed {plan.seed}: {damage.done.total()} faults of {len(damage.done)} kinds")
    say("".join(f"  {count:3d}  {kind}\n" for kind, count in sorted(damage.done.items())))
    say(str(report))
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
