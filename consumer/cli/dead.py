"""`consumer dead`: looking at dead letters, and carrying them to a file and back."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Annotated

import typer

from config.settings import Settings
from consumer.cli import dead_out
from consumer.cli.dead_filters import Choice, filtered
from consumer.cli.dead_shown import ENTRIES, GROUPS, entry_facts, group_facts, letter_facts, table
from consumer.cli.interrupts import finish
from consumer.cli.output import AsJson, errors_as_sentences, fail, printable, settings, show
from consumer.core.letter_index import Wanted
from consumer.core.letter_lines import line_of
from consumer.dead import looks, transfer
from consumer.dead.reindex import reindex

Limit = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]

app = typer.Typer(help="Look at dead letters, and send them back to work.", no_args_is_help=True)
app.command("redrive")(filtered(dead_out.redrive))
app.command("purge")(filtered(dead_out.purge))
app.command("edit")(dead_out.edit)


@app.command("list")
@filtered
def list_letters(
    choice: Choice,
    groups: Annotated[bool, typer.Option("--groups", help="Count them by their errors.")] = False,
    limit: Limit = 50,
    after: Annotated[str, typer.Option(help="The page that follows the letter with this id.", show_default=False)] = "",
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="Instead of the newest.")] = False,
    as_json: AsJson = False,
) -> None:
    """List dead letters, the newest first. Only the index is read; the queue is asked how many it has."""
    with errors_as_sentences():
        chosen = settings()
        wanted = choice.wanted(chosen)
        if groups and (after or oldest_first):
            fail("--groups has one order and one page: leave out --after and --oldest-first", 2)
        if groups:
            listed = finish(looks.groups(chosen, wanted, limit))
            rows, name, columns = [group_facts(group) for group in listed.groups], "groups", GROUPS
        else:
            listed = finish(looks.page(chosen, wanted, limit, after or None, oldest_first=oldest_first))
            rows, name, columns = [entry_facts(entry) for entry in listed.entries], "letters", ENTRIES
        if as_json:
            show({name: rows, "count": listed.count, "difference": listed.difference or None}, as_json)
            return
        table(rows, columns)
        typer.echo(f"{len(rows)} {name} shown, {listed.count} letters in all")
        if listed.difference:
            sys.stderr.write(f"{printable(listed.difference)}\n")


@app.command("show")
def show_letter(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="As 'consumer dead list' names it.")],
    payload: Annotated[bool, typer.Option("--payload", help="The body as well, which may hold secrets.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of one letter, without its payload."""
    with errors_as_sentences():
        letter = finish(looks.show(settings(), letter_id))
        show(letter_facts(letter, payload=payload), as_json)


@app.command("export")
@filtered
def export(
    choice: Choice,
    output: Annotated[str, typer.Option(help="A file, which is there whole or not at all.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """Write letters as lines of JSON, payloads included, the oldest first; 'consumer dead import' reads them."""
    with errors_as_sentences():
        chosen = settings()
        wanted = choice.wanted(chosen)
        if not output:
            finish(_write(chosen, wanted, sys.stdout))
            return
        try:
            count = _write_file(chosen, wanted, Path(output))
        except OSError as error:
            fail(f"{output} can't be written: {error.strerror}", 2)
        show({"exported": count}, as_json)


async def _write(chosen: Settings, wanted: Wanted, file: IO[str]) -> int:
    count = 0
    async for letter in looks.export(chosen, wanted):
        file.write(f"{line_of(letter)}\n")
        count += 1
    file.flush()
    return count


def _write_file(chosen: Settings, wanted: Wanted, path: Path) -> int:
    if path.exists() and not path.is_file():  # a device or a pipe, which nothing may take the place of
        with path.open("w") as file:
            return finish(_write(chosen, wanted, file))
    path = path.resolve()  # what a link leads to
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            count = finish(_write(chosen, wanted, file))
            os.fsync(file.fileno())
            Path(file.name).rename(path)
        except BaseException:
            with suppress(OSError):
                Path(file.name).unlink()
            raise
    return count


@app.command("import")
def bring_back(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What 'consumer dead export' wrote.")],
    as_json: AsJson = False,
) -> None:
    """Put exported letters back into the dead-letter queue, with their ids. Those that are there already stay one."""
    with errors_as_sentences():
        chosen = settings()
        try:
            with path.open(encoding="ascii") as lines:
                transfer.check(chosen, path.name, lines)
                lines.seek(0)
                brought = finish(transfer.bring_back(chosen, lines))
        except OSError as error:
            fail(f"{path} can't be read: {error.strerror}", 2)
        except UnicodeDecodeError:
            fail(f"{path} is no file of exported letters: these are in ASCII; nothing was imported", 2)
        show({"imported": brought.added, "there_already": brought.known}, as_json)


@app.command("index")
def index(as_json: AsJson = False) -> None:
    """Compare the index with the queue, and put the index right.

    This is the one look that takes every letter in hand once and gives it back: the broker counts a delivery of each.
    """
    with errors_as_sentences():
        compared = finish(reindex(settings()))
        show({"found": compared.found, "added": compared.added, "missing": compared.missing}, as_json)
