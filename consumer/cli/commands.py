"""All commands, one file a group. Only the files of the command that was asked for are imported: all of them take half
a second of CPU."""

from importlib import import_module
from typing import Any

import typer

COMMANDS = {
    "run": "run.run",
    "submit": "jobs.submit",
    "status": "jobs.status",
    "cancel": "jobs.cancel",
    "doctor": "doctor.doctor",
    "topology": "topology.app",
    "config": "config.app",
    "dead": "dead.app",
}
"""What the command is called, and its file and name in this folder."""


def app_with(asked: str | None) -> typer.Typer:
    """The command line with the one command that was asked for; with all of them where it is none of these."""
    app = typer.Typer(
        name="consumer",
        help="A RabbitMQ consumer daemon for Python jobs that you can't afford to lose.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_is_a_group)
    for name in COMMANDS if asked not in COMMANDS else [asked]:
        found = _found(COMMANDS[name])
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _is_a_group() -> None:
    """A RabbitMQ consumer daemon for Python jobs that you can't afford to lose."""


def _found(place: str) -> Any:
    module, _, name = place.partition(".")
    return getattr(import_module(f"consumer.cli.{module}"), name)
