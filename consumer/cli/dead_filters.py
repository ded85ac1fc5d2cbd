"""Which dead letters: the options that `list`, `export`, `redrive` and `purge` share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from config.settings import Settings
from consumer.cli.output import fail
from consumer.cli.when import past
from consumer.core.letter_index import Wanted
from consumer.core.letters import GROUP
from consumer.wiring import clock
from schemas.codes import Code


def _option(help_: str) -> Any:
    return Annotated[str | None, typer.Option(help=help_, show_default=False)]


OPTIONS: dict[str, Any] = {
    "ids": Annotated[list[str] | None, typer.Argument(metavar="ID", help="Letters by their ids.", show_default=False)],
    "code": _option("Only those of this code, e.g. rejected."),
    "kind": _option("Only jobs of this kind."),
    "key": _option("Only jobs with this key."),
    "error_type": _option("Only errors of this type, e.g. KeyError."),
    "group": _option("Only this group of errors, as 'list --groups' names it."),
    "since": _option("Only those that died since then: a time with its zone, or 2h for two hours ago."),
    "until": _option("Only those that died before then, likewise."),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The options as they were given."""

    ids: Sequence[str] | None = None
    code: str | None = None
    kind: str | None = None
    key: str | None = None
    error_type: str | None = None
    group: str | None = None
    since: str | None = None
    until: str | None = None

    @property
    def is_everything(self) -> bool:
        return not any(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        """For the log."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return " ".join(f"{name}={value}" for name, value in said.items() if value) or "all"

    def wanted(self, settings: Settings) -> Wanted:
        """Ends with exit code 2 and a sentence where it can't mean anything."""
        for name, word in self._words():
            if not word:
                fail(f"{name} is empty: leave it out to have no such filter", 2)
            if not _is_text(word):
                fail(f"{name} is not UTF-8, and all that letters say is", 2)
        if self.code and self.code not in set(Code):
            fail(f"there is no code '{self.code}': docs/messages.md lists them", 2)
        if self.group and not GROUP.fullmatch(self.group):
            fail(f"--group '{self.group}' can be none: 'consumer dead list --groups' names them", 2)
        now = clock()
        since = past(self.since, "--since", now) if self.since else None
        until = past(self.until, "--until", now) if self.until else None
        if since is not None and until is not None and since >= until:
            fail("--since is not before --until: there can be no such letter", 2)
        return Wanted(
            settings.queue,
            ids=frozenset(self.ids) if self.ids else None,
            code=self.code,
            kind=self.kind,
            key=self.key,
            error_type=self.error_type,
            group=self.group,
            since=since,
            until=until,
        )

    def _words(self) -> Iterator[tuple[str, str]]:
        """One that is empty comes of a variable that a script didn't set: with it the filter would be none at all."""
        for field in fields(self):
            word = getattr(self, field.name)
            if isinstance(word, str):
                yield f"--{field.name.replace('_', '-')}", word


def _is_text(word: str) -> bool:
    """What isn't reaches us as halves of surrogate pairs, which no database takes."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all of the options, and hand it the Choice that they make as its first argument."""

    @wraps(command)
    def run(**given: Any) -> None:
        command(Choice(**{name: given.pop(name) for name in OPTIONS}), **given)

    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=option, default=None) for name, option in OPTIONS.items()
    ]
    own = [item.replace(kind=Parameter.KEYWORD_ONLY) for item in [*signature(command).parameters.values()][1:]]
    run.__signature__ = Signature([*shared, *own])  # type: ignore[attr-defined]
    run.__annotations__ = {item.name: item.annotation for item in (*shared, *own)}
    return run
