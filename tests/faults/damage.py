"""The kinds of faults that the chaos run injects, each with what it is done to."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

from tests.support.cluster import Cluster
from tests.support.daemon import Daemon
from tests.support.leash import descendants
from tests.support.postgres import Postgres
from tests.support.proxy import Proxy
from tests.support.rabbit import Rabbit
from tests.support.waiting import elapse

LONG = 5.0
"""Seconds that an outage takes at most."""
SHOWN = 3_000


class Replica:
    """A daemon that is started again whenever it ends; `wrong` collects the ends that nobody asked for."""

    def __init__(self, name: str, settings: dict[str, str], wrong: list[str]) -> None:
        self.name = name
        self._settings = settings
        self._wrong = wrong
        self.seen: set[int] = set()

    async def start(self) -> None:
        self.daemon = await Daemon(self._settings).__aenter__()
        self.seen.add(self.daemon.pid)
        self._expected = False
        self._watching = asyncio.create_task(self._watch(self.daemon))

    async def _watch(self, daemon: Daemon) -> None:
        code = await daemon.wait()
        if not self._expected:
            self._wrong.append(f"{self.name} ended by itself with {code}: {daemon.output[-SHOWN:]}")
            await self.start()

    async def again(self, number: signal.Signals) -> None:
        """End it by a signal, and start it again."""
        await self.end(number)
        await self.start()

    async def end(self, number: signal.Signals) -> int:
        self.seen.update(self.daemon.children)
        self._expected = True
        self.daemon._signal(number)
        return await self.daemon.wait()

    def child(self, random: Random, *, zygote: bool) -> int | None:
        """The zygote is started by the daemon, and the children by the zygote."""
        family = list(descendants(self.daemon.pid))
        self.seen.update(family)
        return (family[0] if zygote else random.choice(family[1:])) if len(family) > 1 else None


class Damage:
    """`kinds` are what can be done, by name; one thing at a time to each target."""

    def __init__(
        self,
        random: Random,
        replicas: list[Replica],
        rabbit: Rabbit | Cluster,
        postgres: Postgres,
        proxies: dict[str, list[Proxy]],
        say: Callable[[str], object],
    ) -> None:
        self._random = random
        self._replicas = replicas
        self._rabbit = rabbit
        self._postgres = postgres
        self._proxies = proxies
        self._say = say
        self._busy: dict[object, asyncio.Lock] = {}
        self.done: Counter[str] = Counter()
        self.kinds: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "daemon killed": lambda: self._to_daemon("killed", lambda r: r.again(signal.SIGKILL)),
            "daemon drained": lambda: self._to_daemon("drained", lambda r: r.again(signal.SIGTERM)),
            "daemon paused": lambda: self._to_daemon("paused", lambda r: self._paused(r.daemon.pid)),
            "child killed": lambda: self._to_daemon("child killed", lambda r: self._to_child(r, signal.SIGKILL)),
            "child paused": lambda: self._to_daemon("child paused", lambda r: self._to_child(r, signal.SIGSTOP)),
            "zygote killed": lambda: self._to_daemon("zygote killed", lambda r: self._to_child(r, None)),
            "broker killed": lambda: self._to("broker", "killed", rabbit.kill, rabbit.start),
            "broker restarted": lambda: self._to("broker", "restarted", rabbit.stop, rabbit.start),
            "broker paused": lambda: self._frozen("broker", rabbit),
            "broker closes connections": lambda: self._to("broker", "closes connections", rabbit.close_connections),
            "database restarted": lambda: self._to("database", "restarted", postgres.stop, postgres.start),
            "database killed": lambda: self._to("database", "killed", postgres.kill, postgres.start),
            "database paused": lambda: self._frozen("database", postgres),
            "database ends sessions": lambda: self._to("database", "ends sessions", self._end_sessions),
            "broker cut": lambda: self._cut("broker"),
            "broker stalled": lambda: self._stall("broker"),
            "database cut": lambda: self._cut("database"),
            "database stalled": lambda: self._stall("database"),
        }

    async def rage(self, seconds: float, pause: tuple[float, float]) -> None:
        """Inject one fault after the other, each kind once before any comes again; return when all are over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        going: set[asyncio.Task[None]] = set()
        while loop.time() < end:
            for kind in self._random.sample(sorted(self.kinds), len(self.kinds)):
                await elapse(self._random.uniform(*pause))
                if loop.time() >= end:
                    break
                self.done[kind] += 1
                going.add(asyncio.create_task(self.kinds[kind]()))
        await asyncio.gather(*going)

    async def _to_daemon(self, what: str, act: Callable[[Replica], Awaitable[object]]) -> None:
        replica = self._random.choice(self._replicas)
        async with self._alone(replica):
            self._say(f"{replica.name} {what}")
            await act(replica)

    async def _to_child(self, replica: Replica, number: signal.Signals | None) -> None:
        pid = replica.child(self._random, zygote=number is None)
        if pid is None:
            return
        if number is signal.SIGSTOP:
            await self._paused(pid)
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    async def _paused(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            await elapse(self._random.uniform(0.2, LONG))
            os.kill(pid, signal.SIGCONT)

    async def _to(self, target: str, what: str, *acts: Callable[[], object]) -> None:
        async with self._alone(target):
            self._say(f"{target} {what}")
            for act in acts:
                await asyncio.to_thread(act)

    async def _frozen(self, target: str, server: Rabbit | Cluster | Postgres) -> None:
        async with self._alone(target):
            self._say(f"{target} paused")
            pause = server.paused()
            await asyncio.to_thread(pause.__enter__)
            await elapse(self._random.uniform(0.2, LONG))
            await asyncio.to_thread(pause.__exit__, None, None, None)

    def _end_sessions(self) -> None:
        self._postgres.psql(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where pid <> pg_backend_pid() and backend_type = 'client backend'"
        )

    async def _cut(self, target: str) -> None:
        proxy = self._random.choice(self._proxies[target])
        async with self._alone(proxy):
            self._say(f"{target} connections cut, new ones refused for a moment")
            proxy.refuse()
            proxy.cut()
            await elapse(self._random.uniform(0, LONG / 5))
            proxy.accept()

    async def _stall(self, target: str) -> None:
        proxy = self._random.choice(self._proxies[target])
        async with self._alone(proxy):
            directions = self._random.choice(((True, True), (True, False), (False, True)))
            self._say(f"{target} connections stalled")
            proxy.stall(to_server=directions[0], to_client=directions[1])
            await elapse(self._random.uniform(0.2, LONG))
            proxy.flow()

    def _alone(self, target: object) -> asyncio.Lock:
        return self._busy.setdefault(target, asyncio.Lock())
