"""`consumer topology`: what must be on the broker."""

import asyncio
from typing import Any

import typer

from consumer import operations, wiring
from consumer.cli.doctor import lines, plain
from consumer.cli.output import AsJson, errors_as_sentences, fail, settings, show
from consumer.core.errors import TopologyError
from consumer.core.findings import Severity
from consumer.core.topology import Topology
from consumer.doctor import look_at_broker

app = typer.Typer(help="Show, check or declare queues and exchanges.", no_args_is_help=True)


@app.command("show")
def show_topology(as_json: AsJson = False) -> None:
    """What must be on the broker, from the settings alone; connects nowhere."""
    with errors_as_sentences():
        topology = wiring.topology_of(settings())
        show(_plain(topology), as_json, _lines(topology))


@app.command("check")
def check(as_json: AsJson = False) -> None:
    """Compare the broker with the settings and change nothing; exit code 4 where they differ."""
    with errors_as_sentences():
        broker = asyncio.run(look_at_broker(settings()))
        findings = [*broker.findings(), *broker.topology_findings()]
        differs = any(finding.severity is Severity.FAULT for finding in findings)
        verdict = "differs" if differs else "as wanted"
        table = [("topology", verdict), *(("", line) for line in lines(findings))]
        show({"topology": verdict, "findings": plain(findings)}, as_json, table)
        if differs:
            raise typer.Exit(TopologyError.exit_code)


@app.command("declare")
def declare(as_json: AsJson = False) -> None:
    """Declare what is missing; what differs is reported and left alone."""
    with errors_as_sentences():
        faults = asyncio.run(operations.declare_topology(settings()))
        if as_json:
            show({"topology": "differs" if faults else "declared", "faults": faults}, as_json=True)
        elif not faults:
            show({"topology": "declared"}, as_json=False)
        if faults:
            fail("; ".join(faults), TopologyError.exit_code)


def _plain(topology: Topology) -> dict[str, Any]:
    return {
        "exchanges": [{"name": e.name, "type": e.type} for e in topology.exchanges],
        "queues": [{"name": q.name, "arguments": q.arguments} for q in topology.queues],
        "bindings": [{"from": b.source, "to": b.destination, "routing_key": b.routing_key} for b in topology.bindings],
    }


def _lines(topology: Topology) -> list[tuple[str, Any]]:
    queues = [
        (f"queue {q.name}", ", ".join(f"{name}={value}" for name, value in q.arguments.items()))
        for q in topology.queues
    ]
    return [*((f"exchange {e.name}", e.type) for e in topology.exchanges), *queues]
