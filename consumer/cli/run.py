"""`consumer run`: the daemon."""

import asyncio
import sys

import typer
import uvloop

from config.logging import configure
from consumer import app
from consumer.cli.output import AsJson, errors_as_sentences, settings

BUG = 70


def run(as_json: AsJson = False) -> None:
    """Consume until SIGTERM or SIGINT; a second signal skips waiting for running jobs.

    Exit codes: 0 drained, 2 settings, 3 job modules, 4 topology, 70 a bug of ours.
    """
    with errors_as_sentences():
        chosen = settings()
        configure(chosen.log.level, "json" if as_json else chosen.log.format)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(app.run(chosen))
        except (KeyboardInterrupt, asyncio.CancelledError):
            sys.stderr.write("consumer: interrupted before it had started\n")
            raise typer.Exit(0) from None
