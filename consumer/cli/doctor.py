"""`consumer doctor`: is everything there that the daemon needs?"""

from collections.abc import Iterator, Sequence
from typing import Any

import typer

from consumer.cli.interrupts import finish
from consumer.cli.output import AsJson, errors_as_sentences, settings, show
from consumer.core.findings import Finding, Severity
from consumer.doctor import Part, examine

UNWELL = 1
MARKS = {Severity.FAULT: "FAULT", Severity.WARNING: "warning", Severity.UNSEEN: "not looked at"}
WIDTH = max(map(len, MARKS.values()))


def doctor(as_json: AsJson = False) -> None:
    """Check settings, job modules, store, broker and topology; exit code 1 where something is wrong."""
    with errors_as_sentences():
        parts = finish(examine(settings()))
        show({part.name: _plain(part) for part in parts}, as_json, [line for part in parts for line in _lines(part)])
        if not all(part.well for part in parts):
            raise typer.Exit(UNWELL)


def _plain(part: Part) -> dict[str, Any]:
    return {"well": part.well, "detail": part.detail, "findings": plain(part.findings)}


def _lines(part: Part) -> Iterator[tuple[str, str]]:
    if part.failed or part.well:
        yield part.name, f"{'FAULT' if part.failed else 'ok':<{WIDTH}}  {part.detail}"
    for line in lines(part.findings):
        yield part.name, line


def lines(findings: Sequence[Finding]) -> list[str]:
    """The worst first."""
    order = list(MARKS)
    chosen = sorted(findings, key=lambda finding: order.index(finding.severity))
    return [f"{MARKS[finding.severity]:<{WIDTH}}  {finding}" for finding in chosen]


def plain(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [
        {
            "severity": finding.severity,
            "what": finding.what,
            "found": finding.found,
            "wanted": finding.wanted,
            "way_out": finding.way_out,
        }
        for finding in findings
    ]
