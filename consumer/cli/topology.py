"""`consumer topology`: what must be on the broker."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from consumer import operations, wiring
from consumer.cli.doctor import lines, plain
from consumer.cli.interrupts import finish
from consumer.cli.output import AsJson, errors_as_sentences, fail, settings, show
from consumer.core.errors import TopologyError
from consumer.core.findings import MANY, Severity
from consumer.core.topology import Argument, Topology
from consumer.doctor import look_at_broker
from consumer.migration import Report, migrate

app = typer.Typer(help="Show, check, declare or migrate queues and exchanges.", no_args_is_help=True)
UNFINISHED = 1


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
        broker = finish(look_at_broker(settings()))
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
        faults = finish(operations.declare_topology(settings()))
        if as_json:
            show({"topology": "differs" if faults else "declared", "faults": faults}, as_json=True)
        elif not faults:
            show({"topology": "declared"}, as_json=False)
        if faults:
            more = [f"{len(faults) - MANY} more, which --json lists"] if len(faults) > MANY else []
            fail("; ".join([*faults[:MANY], *more]), TopologyError.exit_code)


@app.command("migrate")
def migrate_from(
    version: Annotated[
        int, typer.Option("--from", min=1, help="The version to leave; topology.version is the new one.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Lead all routes to the queues of this version, and move there what is in the old ones; deletes nothing."""
    with errors_as_sentences():
        report = finish(migrate(settings(), version, dry_run=dry_run))
        show(_report(report), as_json, _report_lines(report))
        if report.remains:
            raise typer.Exit(UNFINISHED)


def _report(report: Report) -> dict[str, Any]:
    return {
        "dry_run": report.dry_run,
        "finished": not report.dry_run and not report.remains,
        "steps": [{"step": step, "detail": detail} for step, detail in report.steps],
        "remains": report.remains,
        "may_be_deleted": [] if report.remains else report.deletable,
    }


def _report_lines(report: Report) -> list[tuple[str, str]]:
    would = "would " if report.dry_run else ""
    steps = [(f"{would}{step}", detail) for step, detail in report.steps]
    if report.remains:
        return [*steps, *(("NOT FINISHED", why) for why in report.remains)]
    return [*steps, *(("you may delete", what) for what in report.deletable)]


def _plain(topology: Topology) -> dict[str, Any]:
    return {
        "exchanges": [{"name": e.name, "type": e.type, "arguments": e.arguments} for e in topology.exchanges],
        "queues": [{"name": q.name, "arguments": q.arguments} for q in topology.queues],
        "bindings": [{"from": b.source, "to": b.destination, "routing_key": b.routing_key} for b in topology.bindings],
    }


def _lines(topology: Topology) -> list[tuple[str, Any]]:
    exchanges = [(f"exchange {e.name}", ", ".join([e.type, *_shown(e.arguments)])) for e in topology.exchanges]
    return [*exchanges, *((f"queue {q.name}", ", ".join(_shown(q.arguments))) for q in topology.queues)]


def _shown(arguments: Mapping[str, Argument]) -> list[str]:
    return [f"{name}={value}" for name, value in arguments.items()]
