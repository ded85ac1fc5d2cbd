"""`consumer submit`, `consumer status` and `consumer cancel`."""

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from config.settings import Settings
from consumer import operations
from consumer.cli.interrupts import finish
from consumer.cli.output import AsJson, errors_as_sentences, fail, settings, show
from consumer.cli.when import after, at, moment
from consumer.core.errors import SettingsError
from consumer.core.row import Status
from consumer.core.strict_json import StrictJsonError, loads
from consumer.status import describe
from consumer.wiring import clock

UNKNOWN, OVER = 1, 1


def submit(
    kind: Annotated[str, typer.Argument(help="Which handler runs it, e.g. primes.count")],
    payload: Annotated[str, typer.Argument(help="JSON, @file, or - for standard input")],
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: one effect per kind and key. Default: a new one.")
    ] = None,
    delay: Annotated[str | None, typer.Option(help="Run it no sooner than in so many seconds, or 30m, 2h, 7d.")] = None,
    not_before: Annotated[
        str | None, typer.Option("--at", help="Run it no sooner than at this time, e.g. 2030-01-31T06:00Z.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="Start no attempt after this time, or this long from now.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Publish one job; returns once the broker has confirmed it."""
    with errors_as_sentences():
        due = _due(delay, not_before)
        until = _until(deadline, due)
        chosen = settings()
        body = json_of(payload, chosen)
        row = finish(operations.submit(chosen, kind, str(uuid4()) if key is None else key, body, due, until))
        show(describe(row), as_json, [("submitted", f"{row.kind} {row.key}"), ("status", str(row.status))])


def status(
    kind: Annotated[str, typer.Argument(help="The kind, e.g. primes.count")],
    key: Annotated[str, typer.Argument(help="The idempotency key")],
    as_json: AsJson = False,
) -> None:
    """Show what the store knows of a job. Exit code 1: it has never been seen, or its row was pruned."""
    with errors_as_sentences():
        row = finish(operations.find(settings(), kind, key))
        if row is None:
            fail(f"no job of kind '{kind}' with key '{key}' has been seen by this store", UNKNOWN)
        show(describe(row), as_json)


def cancel(
    kind: Annotated[str, typer.Argument(help="The kind, e.g. primes.count")],
    key: Annotated[str, typer.Argument(help="The idempotency key")],
    as_json: AsJson = False,
) -> None:
    """End a job for good: queued, delayed, waiting for a retry, running, failed, or not even seen yet.

    A running one is ended within about a second, a failed one can't be redriven. Exit code 1: it has succeeded.
    """
    with errors_as_sentences():
        row = finish(operations.cancel(settings(), kind, key))
        if row.status is not Status.CANCELLED:
            fail(
                f"the job of kind '{kind}' with key '{key}' has {row.status} already: there is nothing to cancel", OVER
            )
        seen = "yes" if row.fingerprint else "not yet: it won't run when it comes"
        why = row.fault.message if row.fault else None
        show(describe(row), as_json, [("job", f"{row.kind} {row.key}"), ("why", why), ("seen", seen)])


def _due(delay: str | None, not_before: str | None) -> int | None:
    """Empty ones come of a variable that a script didn't set, and are refused like other words."""
    if delay is not None and not_before is not None:
        raise SettingsError("--delay and --at say the same thing twice: give one of them")
    if delay is not None:
        return after(delay, "--delay", clock())
    return None if not_before is None else at(not_before, "--at")


def _until(deadline: str | None, due: int | None) -> int | None:
    if deadline is None:
        return None
    now = clock()
    until = moment(deadline, "--deadline", now)
    if until <= now:
        raise SettingsError(f"--deadline {deadline!r} is over already: the job would never start")
    if due is not None and until <= due:
        raise SettingsError(f"--deadline {deadline!r} is no later than the job may start: it would never start")
    return until


def json_of(payload: str, chosen: Settings) -> bytes:
    """The bytes of a payload; ends with 2 where they are no JSON."""
    body = _bytes_of(payload)
    try:
        loads(body, max_depth=chosen.message.max_depth)
    except StrictJsonError as error:
        fail(f"the payload is not acceptable JSON ({error.code}): {error.detail}", 2)
    return body


def _bytes_of(payload: str) -> bytes:
    try:
        if payload == "-":
            return typer.get_binary_stream("stdin").read()
        if payload.startswith("@"):
            return Path(payload[1:]).read_bytes()
    except OSError as error:
        fail(f"the payload file {payload[1:]} can't be read: {error.strerror}", 2)
    return payload.encode("utf-8", "surrogateescape")
