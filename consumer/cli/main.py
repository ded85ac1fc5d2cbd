"""The command `consumer`. Heavy imports come after the signal handler, so that an early SIGTERM ends cleanly."""

import os
import signal
import sys
from io import TextIOWrapper
from typing import NoReturn


def main() -> None:
    is_daemon = sys.argv[1:2] == ["run"]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave if is_daemon else _break_off)
    if is_daemon and set(sys.argv[2:]) <= {"--json"}:
        # the daemon paints nothing, and typer and structlog would load rich and pygments: 4 MB in every pod
        sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names and messages may have what this terminal has not
    from consumer.cli.commands import app_with  # noqa: PLC0415 see above

    app_with(sys.argv[1] if sys.argv[1:] else None)()


def _leave(*_: object) -> NoReturn:
    """Nothing is in hand yet."""
    sys.exit(0)


def _break_off(number: int, _: object) -> NoReturn:
    """At once: whoever reads the settings at this moment may take an exception for a fault in them."""
    sys.stderr.write("consumer: interrupted\n")
    os._exit(128 + number)
