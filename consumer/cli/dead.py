"""`consumer dead`: the dead-letter queue."""

import asyncio
from typing import Annotated

import typer

from consumer import operations
from consumer.cli.output import AsJson, errors_as_sentences, fail, settings, show
from schemas.codes import Code

app = typer.Typer(help="Send dead letters back to work.", no_args_is_help=True)
EVERYTHING = 1_000_000_000


@app.command("redrive")
def redrive(
    code: Annotated[str, typer.Option(help="Only those of this code, e.g. collateral.")],
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = EVERYTHING,
    as_json: AsJson = False,
) -> None:
    """Send the dead letters of one code back to work, as a new generation of their jobs."""
    with errors_as_sentences():
        if code not in set(Code):
            fail(f"there is no code '{code}': docs/messages.md lists them", 2)
        sent = asyncio.run(operations.redrive(settings(), code, limit))
        show({"redriven": sent}, as_json)
