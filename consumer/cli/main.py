"""The command `consumer`. Heavy imports come after the signal handler, so that an early SIGTERM ends cleanly."""

import signal
import sys
from typing import NoReturn


def main() -> None:
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    from consumer.cli.commands import app  # noqa: PLC0415 see above

    app()


def _leave(*_: object) -> NoReturn:
    """Nothing is in hand yet."""
    sys.exit(0)
