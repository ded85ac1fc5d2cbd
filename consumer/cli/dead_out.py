"""`consumer dead redrive`, `purge` and `edit`: what takes letters out of the dead-letter queue."""

import math
import sys
from typing import Annotated

import typer

from config.settings import Settings
from consumer.cli.dead_filters import Choice
from consumer.cli.dead_shown import GROUPS, group_facts, table
from consumer.cli.interrupts import finish
from consumer.cli.jobs import json_of
from consumer.cli.output import AsJson, errors_as_sentences, fail, printable, settings, show
from consumer.core.letter_index import Wanted
from consumer.dead import edit as edits
from consumer.dead import looks
from consumer.dead import purge as purges
from consumer.dead import redrive as redrives
from consumer.dead.canary import Canary
from consumer.wiring import clock

SHOWN_GROUPS = 20


def redrive(
    choice: Choice,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.", show_default=False)] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="At most so many a second.", show_default=False)] = None,
    canary: Annotated[
        int | None,
        typer.Option(min=1, help="Send so many first, and the others only if all of them succeed.", show_default=False),
    ] = None,
    canary_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for that.")] = 60.0,
    max_redrives: Annotated[int, typer.Option(min=1, max=1_000, help="Leave out what was redriven so often.")] = 5,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send dead letters back to work, as a new generation of their jobs: attempts count anew, the history stays.

    Those that are dead now: what dies meanwhile stays. Exit code 1: it stopped half-way, the others are in the queue.
    """
    with errors_as_sentences():
        chosen = settings()
        order = redrives.Order(
            _wanted(chosen, choice),
            max_redrives,
            limit=math.inf if limit is None else limit,
            rate=math.inf if rate is None else rate,
            canary=None if canary is None else Canary(canary, canary_timeout),
        )
        if dry_run:
            plan = finish(redrives.plan(chosen, order))
            show({"would_be_redriven": plan.sent, "redriven_too_often": plan.capped}, as_json)
            return
        done = finish(redrives.redrive(chosen, order))
        show({"redriven": done.sent, "redriven_too_often": done.capped}, as_json)


def purge(
    choice: Choice,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    all_of_them: Annotated[bool, typer.Option("--all", help="Says with --yes that no filter is meant.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Throw dead letters away for good. Shows what would go, and does it with --yes or after you typed its count."""
    with errors_as_sentences():
        chosen = settings()
        wanted, until = _wanted(chosen, choice), clock() + 1
        if yes and choice.is_everything and not all_of_them:
            fail("--yes wants ids, a filter or --all: a list of ids that came out empty would purge all letters", 2)
        if dry_run or not yes:
            listed = finish(looks.groups(chosen, wanted, SHOWN_GROUPS))
            groups = [group_facts(group) for group in listed.groups]
            if as_json:
                show({"would_be_purged": listed.count, "groups": groups}, as_json)
                return
            table(groups, GROUPS)
            if dry_run or not listed.count or not sys.stdin.isatty():
                show({"would_be_purged": listed.count}, as_json)
                return
            _confirm(listed.count)
        purged = finish(purges.purge(chosen, purges.Purge(wanted, printable(str(choice)), until)))
        show({"purged": purged}, as_json)


def edit(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="As 'consumer dead list' names it.")],
    payload: Annotated[str, typer.Option(help="The right one: JSON, @file, or - for standard input.")],
    as_json: AsJson = False,
) -> None:
    """Put the payload of a dead letter right and send it to work, if its kind accepts the payload."""
    with errors_as_sentences():
        chosen = settings()
        body = json_of(payload, chosen)
        letter = finish(edits.edit(chosen, letter_id, body))
        show({"id": letter.id, "state": str(letter.state), "kind": letter.kind, "key": letter.key}, as_json)


def _wanted(chosen: Settings, choice: Choice) -> Wanted:
    """Letters that are named one by one must be there, so that a slip of the pen is told before anything is done."""
    wanted = choice.wanted(chosen)
    if wanted.ids is not None:
        finish(looks.check_dead(chosen, wanted.ids))
    return wanted


def _confirm(count: int) -> None:
    said = typer.prompt(f"{count} letters would be gone for good. Type their number to purge them")
    if said.strip() != str(count):
        fail("that is not their number: nothing was purged", 2)
