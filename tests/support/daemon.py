"""The daemon as a subprocess: started with settings, watched by its logs and probes, ended by signals."""

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from tests.support.command import environment
from tests.support.leash import ROOT, descendants
from tests.support.waiting import eventually, free_port

Line = dict[str, Any]
DIE_WITH_US = ["setpriv", "--pdeathsig", "KILL", "--"]
SHOWN = 20_000
"""Characters of output that go with a failure."""


class Daemon:
    """`settings` are environment variables without their prefix: {"POOL__PROCESSES": "2"}."""

    def __init__(self, settings: Mapping[str, str], *arguments: str) -> None:
        self.port = int(settings.get("HTTP__PORT") or free_port())
        self._arguments = arguments or ("run",)
        self._settings = {"HTTP__PORT": str(self.port)} | dict(settings)
        self._output: list[str] = []
        self.logs: list[Line] = []
        """The log lines so far."""
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *(*DIE_WITH_US, sys.executable, "-m", "consumer", *self._arguments),
            cwd=ROOT,
            env=environment(self._settings),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=1 << 20,
        )
        assert self._process.stdout
        self._stdout = self._process.stdout
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.kill()
        await self.wait()
        if kind:
            print(self.output[-SHOWN:])  # noqa: T201 - pytest shows it with the failure

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def children(self) -> list[int]:
        """The pids of all that the daemon started."""
        return list(descendants(self.pid))

    @property
    def output(self) -> str:
        return "".join(self._output)

    async def ready(self) -> None:
        """Wait until the daemon says that it consumes."""

        async def is_ready() -> bool:
            if not self.running:
                code = await self.wait()
                raise AssertionError(f"the daemon ended with {code}:\n{self.output}")
            return (await self.get("/readyz"))[0] == 200

        await eventually(is_ready, "the daemon is ready")

    async def logged(self, wanted: Callable[[Line], bool], count: int = 1) -> list[Line]:
        """Wait for `count` log lines that are `wanted`, and return them."""
        async with self._changed:
            while len(found := [line for line in self.logs if wanted(line)]) < count:
                if self._stdout.at_eof():
                    raise AssertionError(f"the daemon ended without that line:\n{self.output}")
                await self._changed.wait()
        return found

    async def get(self, path: str) -> tuple[int, str]:
        """Return status and body; status 0 where nobody answers."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return 0, ""
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
        writer.close()
        return int(head.split()[1]), body

    async def metric(self, name: str, **labels: str) -> float:
        """Return the sum of the samples that are called `name` and have these labels."""
        _, text = await self.get("/metrics")
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Return the exit code once the daemon has ended and its output is read."""
        await asyncio.shield(self._reader)
        return await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            self._process.send_signal(number)

    async def _read(self) -> None:
        while line := await self._stdout.readline():
            self._output.append(line.decode(errors="replace"))
            if line.startswith(b"{"):
                self.logs.append(json.loads(line))
            await self._tell()
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
