"""`consumer run`: the daemon."""

import asyncio

import structlog
import uvloop

from config.logging import configure
from consumer import app
from consumer.cli.output import AsJson, errors_as_sentences, fail, settings
from consumer.core.errors import ConsumerError

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
        except ConsumerError:
            raise
        except Exception as error:  # noqa: BLE001 whatever it is, it has a documented exit code
            structlog.get_logger("consumer").exception("a bug of ours ended the daemon")
            fail(f"a bug ended the daemon: {type(error).__name__}; the log has the traceback", BUG)
