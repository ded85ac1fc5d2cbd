"""One run of the command `consumer`, with its output and exit code."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support.leash import ROOT
from tests.support.waiting import free_port

PATIENCE = 30
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


async def consumer(*arguments: str, settings: Mapping[str, str] | None = None, stdin: bytes = b"") -> Done:
    """`settings` are environment variables without their prefix, as for a Daemon."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "consumer", *arguments),
        cwd=ROOT,
        env=environment({"HTTP__PORT": str(free_port())} | dict(settings or {})),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(stdin)
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        out, err = await process.communicate()
        raise TimeoutError(f"consumer {arguments} goes on and on: {out!r} {err!r}") from None
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Ours, with these settings and no others."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("CONSUMER_")}
    return ours | {"PYTHONPATH": str(ROOT)} | {f"CONSUMER_{name}": value for name, value in settings.items()}
