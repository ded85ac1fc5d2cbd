"""`make demo`: some 200 mixed jobs through a real RabbitMQ, live. Nothing of it stays behind."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from consumer.core.delay import Ladder
from consumer.core.topology import Topology, build
from examples.demo.broker import broker
from examples.demo.messages import Publication, bad_jobs, everything, good_jobs, malformed
from examples.demo.report import Figures, show
from tests.support.daemon import Daemon
from tests.support.producer import Producer

PATIENCE = 50
"""Seconds."""


def main() -> None:
    console = Console()
    try:
        with broker() as (url, origin):
            console.print(f"[bold]consumer demo[/bold] on {origin}; results go to a SQLite file")
            with tempfile.TemporaryDirectory(prefix="consumer-demo-") as folder:
                asyncio.run(run(console, url, Path(folder)))
    except LookupError as error:
        sys.exit(f"demo: {error}")
    except TimeoutError:
        sys.exit(f"demo: not finished within {PATIENCE} s; what the daemon logged stands above")
    console.print(
        "Where to look next: README.md, the handlers in examples/demo/jobs.py, what producers publish in "
        "docs/messages.md,\nand the daemon itself: `consumer doctor`, `consumer run`, `consumer submit --help`."
    )


async def run(console: Console, url: str, folder: Path) -> None:
    """A namespace of its own, since the broker may be yours; it is removed at the end."""
    namespace = f"demo-{uuid4().hex[:8]}"
    settings = {
        "BROKER__URL": url,
        "NAMESPACE": namespace,
        "STORE__URL": f"sqlite:///{folder}/demo.sqlite3",
        "JOBS__MODULES": "consumer.jobs.primes,consumer.jobs.text,examples.demo.jobs",
        "JOBS__UNKNOWN_KIND_GRACE_SECONDS": "2",
        "POOL__PROCESSES": "2",
    }
    async with Daemon(settings) as daemon, Producer(url, namespace) as producer:
        try:
            await daemon.ready()
            began = time.monotonic()
            messages = everything()
            publishing = asyncio.create_task(publish(producer, messages))
            async with asyncio.timeout(PATIENCE):
                await watch(console, daemon)
                await publishing
                took = time.monotonic() - began
                dead = await producer.dead_letters(len(bad_jobs()) + len(malformed()))
            daemon.terminate()
            await daemon.wait()
            settled = [line for line in daemon.logs if line["event"] == "job settled"]
            show(console, Figures(len(messages), took, settled, dead))
        finally:
            await remove(producer, build(namespace, "default", Ladder(namespace), 1))


async def publish(producer: Producer, messages: list[Publication]) -> None:
    for message in messages:
        await producer.publish(
            message.body,
            type=message.type,
            message_id=message.message_id,
            content_type=message.content_type,
        )


async def watch(console: Console, daemon: Daemon) -> None:
    """Show progress until every job has its final outcome."""
    total = len(good_jobs()) + len(bad_jobs()) + len(malformed())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=total)
        while not progress.finished:
            counts = {name: await settled(daemon, name) for name in ("complete", "retry", "dead_letter")}
            running = await daemon.metric("consumer_jobs_running")
            progress.update(
                bar,
                completed=counts["complete"] + counts["dead_letter"],
                description=f"{running:.0f} running, {counts['complete']:.0f} done, "
                f"{counts['retry']:.0f} retries, {counts['dead_letter']:.0f} dead letters",
            )
            await asyncio.sleep(0.2)


async def settled(daemon: Daemon, disposition: str) -> float:
    return await daemon.metric("consumer_jobs_settled_total", disposition=disposition)


async def remove(producer: Producer, topology: Topology) -> None:
    """Delete the queues and exchanges that this demo made, and no others."""
    for queue in topology.queues:
        await producer.channel.queue_delete(queue.name)
    for exchange in topology.exchanges:
        await producer.channel.exchange_delete(exchange.name)


if __name__ == "__main__":
    main()
