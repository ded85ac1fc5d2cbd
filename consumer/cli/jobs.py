"""`consumer submit` and `consumer status`."""

import asyncio
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from consumer import operations
from consumer.cli.output import AsJson, errors_as_sentences, fail, settings, show
from consumer.core.strict_json import StrictJsonError, loads
from consumer.status import describe

UNKNOWN = 1


def submit(
    kind: Annotated[str, typer.Argument(help="Which handler runs it, e.g. primes.count")],
    payload: Annotated[str, typer.Argument(help="JSON, @file, or - for standard input")],
    key: Annotated[str, typer.Option(help="Idempotency key: one effect per kind and key. Default: a new one.")] = "",
    as_json: AsJson = False,
) -> None:
    """Publish one job; returns once the broker has confirmed it."""
    with errors_as_sentences():
        body = _body(payload)
        chosen = settings()
        try:
            loads(body, max_depth=chosen.message.max_depth)
        except StrictJsonError as error:
            fail(f"the payload is not acceptable JSON ({error.code}): {error.detail}", 2)
        row = asyncio.run(operations.submit(chosen, kind, key or str(uuid4()), body))
        show(describe(row), as_json, [("submitted", f"{row.kind} {row.key}"), ("status", str(row.status))])


def status(
    kind: Annotated[str, typer.Argument(help="The kind, e.g. primes.count")],
    key: Annotated[str, typer.Argument(help="The idempotency key")],
    as_json: AsJson = False,
) -> None:
    """Show what the store knows of a job. Exit code 1: it has never been seen, or its row was pruned."""
    with errors_as_sentences():
        row = asyncio.run(operations.find(settings(), kind, key))
        if row is None:
            fail(f"no job of kind '{kind}' with key '{key}' has been seen by this store", UNKNOWN)
        show(describe(row), as_json)


def _body(payload: str) -> bytes:
    try:
        if payload == "-":
            return typer.get_binary_stream("stdin").read()
        if payload.startswith("@"):
            return Path(payload[1:]).read_bytes()
    except OSError as error:
        fail(f"the payload file {payload[1:]} can't be read: {error.strerror}", 2)
    return payload.encode("utf-8", "surrogateescape")
