"""What commands print: a table for people or JSON for programs; and how they fail: one sentence, no traceback."""

import errno
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Annotated, Any, NoReturn

import typer

from config.logging import configure
from config.settings import Settings, load
from consumer.core.errors import ConsumerError, SettingsError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def settings() -> Settings:
    """Read them, and send what our parts and the libraries log to stderr in their form."""
    try:
        chosen = load()
    except ValueError as error:
        raise SettingsError(str(error)) from None
    configure(chosen.log.level, chosen.log.format)
    return chosen


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Say what went wrong and exit with its code."""
    try:
        yield
    except ConsumerError as error:
        fail(str(error), error.exit_code)
    except OSError as error:
        if error.errno not in FULL:
            raise
        sys.stdout = StringIO()  # what it still holds could only fail once more, at the very end
        fail(f"the output can't be written: {error.strerror}", 1)


def fail(sentence: str, code: int) -> NoReturn:
    sys.stderr.write(f"consumer: {printable(sentence)}\n")
    raise typer.Exit(code)


def show(data: Any, as_json: bool, table: Sequence[tuple[str, Any]] | None = None) -> None:
    """Print `data` as JSON, or `table` (default: the items of a mapping) as aligned lines."""
    if as_json:
        typer.echo(json.dumps(data, ensure_ascii=True, indent=2))
        return
    rows = list(table if table is not None else data.items())
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        typer.echo(f"{printable(name):<{width}}  {printable(_text(value))}")


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else str(value)


def printable(text: str) -> str:
    """Without the control characters that could drive a terminal: messages come from anybody."""
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)
