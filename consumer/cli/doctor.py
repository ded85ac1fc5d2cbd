"""`consumer doctor`: is everything there that the daemon needs?"""

import asyncio

import typer

from consumer import operations
from consumer.cli.output import AsJson, errors_as_sentences, settings, show

UNWELL = 1


def doctor(as_json: AsJson = False) -> None:
    """Check settings, job modules, store, broker and topology; exit code 1 where something is wrong."""
    with errors_as_sentences():
        findings = asyncio.run(operations.examine(settings()))
        show(
            {finding.part: {"well": finding.well, "detail": finding.detail} for finding in findings},
            as_json,
            [(f.part, f"{'ok   ' if f.well else 'FAULT'}  {f.detail}") for f in findings],
        )
        if not all(finding.well for finding in findings):
            raise typer.Exit(UNWELL)
