"""The parent's end of the zygote: starts it, asks it for children, hears how they end."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from consumer.core.errors import JobModulesError
from consumer.worker import catalogue
from consumer.worker.catalogue import Offer, Sort
from consumer.worker.config import PoolConfig
from consumer.worker.ear import Audience, ImportEar
from consumer.worker.mark import Mark, shared_memory
from consumer.worker.output import pipe
from consumer.worker.process import kill_group
from consumer.worker.pulse import SILENCE, Pulse
from consumer.worker.zygote import PACKET_LIMIT

_log = structlog.get_logger("consumer.worker")
_REAP_PAUSE = 0.005
_PATIENCE = 2.0


class ZygoteLost(Exception):
    """The zygote died, or can't fork: there will be no child now."""


@dataclass(frozen=True, slots=True)
class Death:
    """How a child ended: its wait status and what it used in all its life. None: it died with its zygote."""

    status: int | None = None
    cpu_seconds: float = 0.0
    peak_memory: int = 0


@dataclass(frozen=True, slots=True)
class Birth:
    """A child that was forked. `unclaimed` is a copy of the end from which it receives its tickets.

    `mark` is where the child notes what it does, and stays readable when it is dead; `output` is what it and all
    that it starts write to their standard output and error.
    """

    pid: int
    number: int
    stream: socket.socket
    tickets: socket.socket
    unclaimed: socket.socket
    death: asyncio.Future[Death]
    mark: Mark
    output: int
    memory_limit: int


class Nursery:
    """One zygote; when it is lost, a new nursery takes its place."""

    def __init__(self, config: PoolConfig, audience: Audience) -> None:
        loop = asyncio.get_running_loop()
        self._audience = audience
        self._config = config
        self._loop = loop
        self._catalogue: list[str] = []
        self._ready: asyncio.Future[None] = loop.create_future()
        self._births: dict[int, asyncio.Future[tuple[int, asyncio.Future[Death]]]] = {}
        self._deaths: dict[int, asyncio.Future[Death]] = {}
        self._left_behind: list[int] = []
        self._next = 0
        self._memory_limit = 0
        self.used = 0
        self._pulse = Pulse(self._ping, self._give_up)
        self.lost: asyncio.Future[None] = loop.create_future()

    async def open(self) -> dict[str, Offer]:
        """Start the zygote and return what its job modules offer. Raises JobModulesError."""
        self._start()
        try:
            async with asyncio.timeout(self._config.start_timeout):
                await self._ready
        except TimeoutError:
            await self.close(patience=0)
            raise JobModulesError(
                f"the job modules {', '.join(self._config.modules)} were not imported within "
                f"{self._config.start_timeout:g} s: make them lighter or raise pool.start_timeout"
            ) from None
        except BaseException:
            await self.close(patience=0)
            raise
        self._pulse.start()
        return catalogue.decode("".join(self._catalogue).encode())

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, their_output = pipe()
        self._ear = ImportEar(output, self._audience, self._config.log_limit)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-u", "-P", "-m", "consumer.worker.zygote", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=their_output,
                stderr=their_output,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        os.close(their_output)
        self._control.setblocking(False)
        self._loop.add_reader(self._control, self._read)
        self._tell(
            modules=self._config.modules,
            path=self._config.path,
            memory=self._config.memory_limit,
            container=self._config.container_memory,
            children={Sort.CPU: self._config.processes, Sort.IO: self._config.io_processes},
            cpu=self._config.cpu_limit,
            files=self._config.open_files,
            keep=self._config.keep_leftovers,
            result=self._config.result_limit,
            depth=self._config.max_depth,
            log=self._config.log_limit,
            level=self._config.log_level,
            parent=os.getpid(),
        )

    async def fork(self, sort: Sort) -> Birth:
        memory = shared_memory()
        mark = Mark(memory)
        output, their_output = pipe()
        stream, their_stream = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        tickets, unclaimed = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._next += 1
            number = self._next
            born = self._births[number] = self._loop.create_future()
            with their_stream:
                theirs = (their_stream.fileno(), unclaimed.fileno(), memory, their_output)
                self._tell(*theirs, fork=number, sort=sort)
            pid, death = await born
        except BaseException:
            for end in (stream, tickets, unclaimed, mark):
                end.close()
            os.close(output)
            raise
        finally:
            os.close(memory)
            os.close(their_output)
        return Birth(pid, number, stream, tickets, unclaimed, death, mark, output, self._memory_limit)

    def kill(self, pid: int, number: int) -> None:
        """Signal a child's group. By the zygote, which alone knows that the pid still means that child."""
        with suppress(ZygoteLost):
            self._tell(kill=pid, signal=number)

    def _ping(self) -> None:
        with suppress(ZygoteLost):
            self._tell(ping=True)

    def _give_up(self) -> None:
        """Its children die with it, also those that are stopped as it may be."""
        _log.error("zygote_silent", pid=self._process.pid, seconds=SILENCE)
        self._process.kill()

    async def close(self, patience: float = _PATIENCE) -> None:
        """Let the zygote kill and reap what it has, and end; kill it all where that takes longer than `patience`."""
        self._lose()
        deadline = self._loop.time() + patience
        while self._process.poll() is None:
            if self._loop.time() >= deadline:
                self._process.kill()
                for pid in self._left_behind:
                    kill_group(pid)
            await asyncio.sleep(_REAP_PAUSE)

    def _tell(self, *descriptors: int, **fields: Any) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(fields).encode()], [*descriptors])
        except OSError as error:
            raise ZygoteLost(str(error)) from None

    def _read(self) -> None:
        while not self.lost.done():
            try:
                packet = self._control.recv(PACKET_LIMIT)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if packet:
                self._hear(json.loads(packet))
            else:
                self._lose()

    def _hear(self, said: dict[str, Any]) -> None:
        match said:
            case {"catalogue": piece}:
                self._catalogue.append(piece)
            case {"pong": True}:
                self._pulse.answered()
            case {"ready": True, "memory": memory, "used": used}:
                self._memory_limit, self.used = memory, used
                self._ear.finish()
                self._ready.set_result(None)
            case {"error": sentence}:
                self._ready.set_exception(JobModulesError(sentence))
            case {"forked": number, "pid": pid}:
                death = self._deaths[pid] = self._loop.create_future()
                self._births.pop(number).set_result((pid, death))  # it may be dead before its birth is known
            case {"not_forked": number, "why": why}:
                self._births.pop(number).set_exception(ZygoteLost(why))
            case {"died": pid, "status": status, "cpu": cpu, "memory": memory}:
                self._deaths.pop(pid).set_result(Death(status, cpu, memory))

    def _lose(self) -> None:
        """The end of this nursery, by the zygote's death or by our wish: nobody waits for it any more."""
        if self.lost.done():
            return
        self._pulse.stop()
        self._loop.remove_reader(self._control)
        self._control.close()
        self._ear.close()
        if not self._ready.done():
            names = ", ".join(self._config.modules)
            self._ready.set_exception(
                JobModulesError(f"the job modules {names} ended their process while they were imported")
            )
        for born in self._births.values():
            born.set_exception(ZygoteLost("the zygote died"))
        for death in self._deaths.values():
            death.set_result(Death())
        self._left_behind = [*self._deaths]
        self._births.clear()
        self._deaths.clear()
        self.lost.set_result(None)
