"""`consumer config`: which settings are in force."""

from typing import Any

import typer

from config.settings import Settings
from consumer.cli.output import AsJson, errors_as_sentences, settings, show

app = typer.Typer(help="Show or check the settings.", no_args_is_help=True)


@app.command("show")
def show_settings(as_json: AsJson = False) -> None:
    """Every setting with its value in force; secrets are masked."""
    with errors_as_sentences():
        chosen = settings()
        show(_plain(chosen), as_json, _flat(chosen))


@app.command("check")
def check(as_json: AsJson = False) -> None:
    """Say whether the settings are valid; exit code 2 and one sentence a fault where they aren't."""
    with errors_as_sentences():
        settings()
        show({"settings": "valid"}, as_json)


def _plain(chosen: Settings) -> dict[str, Any]:
    return chosen.model_dump(mode="json")


def _flat(chosen: Settings) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in _plain(chosen).items():
        if isinstance(value, dict):
            rows += [(f"{name}.{inner}", item) for inner, item in value.items()]
        else:
            rows.append((name, value))
    return rows
