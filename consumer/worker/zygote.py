"""The process that children are forked from: it imports the job modules once, and then forks, kills and reaps.

Not multiprocessing's forkserver, which imports the parent's __main__ into children and hides how they ended.
It is started with one file descriptor, a socket to the parent, over which both send JSON packets:

    from the parent                                         from the zygote
    {modules, path, parent, limits...} (first)              {catalogue: piece} ..., {ready, ...} | {error}
    {fork: n, sort} with the child's two sockets and mark   {forked: n, pid} | {not_forked: n, why}
    {kill: pid, signal}                                     {died: pid, status, cpu, memory}
    {ping: true}                                            {pong: true}
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from consumer.worker import catalogue, irreversible, own_hand, process, scratch
from consumer.worker.allowance import allowance
from consumer.worker.catalogue import Sort
from consumer.worker.child import live
from consumer.worker.execute import Limits
from consumer.worker.loading import Kind, LoadError, load
from consumer.worker.prints import Records
from consumer.worker.reaper import Reaper

PACKET_LIMIT = 64 * 1024
_PIECE = 8 * 1024
_DESCRIPTORS_OF_A_CHILD = 4


def main(control: socket.socket) -> None:
    control.set_inheritable(False)
    packet = control.recv(PACKET_LIMIT)
    if not packet:
        return
    order = json.loads(packet)
    process.die_with(order["parent"])
    _take_no_signals()
    irreversible.watch()
    own_hand.watch()
    Records.install(order["level"])
    try:
        kinds = load(order["modules"], order["path"])
        limits = _limits(order, kinds)
    except LoadError as error:
        control.send(_packet(error=str(error)))
        return
    if _of_sort(Sort.IO, kinds):
        import_module("consumer.worker.io_child")  # now, so that each io child needs no time for it
    _offer(control, kinds, limits)
    _take_no_signals()  # again: a job module may have made other arrangements, as for a program of its own
    gc.collect()
    gc.freeze()  # so that collections in children don't touch, and thereby copy, pages that all share
    Zygote(control, kinds, limits).serve()


def _take_no_signals() -> None:
    """Those that a terminal or a service manager sends to everybody."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _limits(order: dict[str, Any], kinds: Mapping[str, Kind]) -> Limits:
    """Only now, since what the job modules take counts too."""
    used = process.data_size()
    children = sum(order["children"][sort] for sort in Sort if _of_sort(sort, kinds))
    memory = allowance(explicit=order["memory"], container=order["container"], children=max(children, 1), used=used)
    if memory and memory < used + used // 4:
        raise LoadError(
            f"the memory limit of a child is {memory} bytes of data, and the job modules take {used} of them before "
            f"any job runs: raise pool.memory_limit to {2 * used} at least, or set -1 for no limit"
        )
    return Limits(memory, order["files"], order["cpu"], order["keep"], order["result"], order["depth"], order["log"])


def _offer(control: socket.socket, kinds: Mapping[str, Kind], limits: Limits) -> None:
    """In pieces, for a packet has a limit, and schemas may be large."""
    text = catalogue.encode(kind.offer for kind in kinds.values()).decode()
    for start in range(0, len(text), _PIECE):
        control.send(_packet(catalogue=text[start : start + _PIECE]))
    control.send(_packet(ready=True, memory=limits.memory, used=process.data_size()))


def _of_sort(sort: Sort, kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    return {name: kind for name, kind in kinds.items() if kind.offer.sort is sort}


def _packet(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


class Zygote:
    def __init__(self, control: socket.socket, kinds: Mapping[str, Kind], limits: Limits) -> None:
        self._control = control
        self._kinds = kinds
        self._limits = limits
        self._place = scratch.Place()
        self._pid = os.getpid()
        self._reaper = Reaper()
        self._deaths, self._wake = os.pipe()

    def serve(self) -> None:
        """Until the parent lets go of the socket, be it by its death; then no child survives."""
        process.outlive_the_parent()
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        self._clear(self._place.remove_abandoned)
        try:
            while self._turn():
                pass
        except ConnectionError:
            pass
        self._reaper.end()
        scratch.remove(self._place.path)

    def _clear(self, remove: Callable[[], None]) -> None:
        """What others had no time to remove. In a process of its own, for it may be much."""
        with suppress(OSError):  # of fork: the rest goes when the zygote does
            pid = os.fork()
            if pid == 0:
                scratch.exit_after(remove)
            self._reaper.spare(pid)

    def _turn(self) -> bool:
        control = self._control.fileno()
        ready, _, _ = select.select([control, self._deaths], [], [])
        if self._deaths in ready:
            os.read(self._deaths, PACKET_LIMIT)
            for end in self._reaper.reap():
                self._control.send(_packet(died=end.pid, status=end.status, cpu=end.cpu, memory=end.memory))
                if os.path.lexists(folder := self._place.of(end.pid)):
                    self._clear(partial(scratch.remove, folder))
        return control not in ready or self._obey()

    def _obey(self) -> bool:
        packet, descriptors, _, _ = socket.recv_fds(self._control, PACKET_LIMIT, _DESCRIPTORS_OF_A_CHILD)
        if not packet:
            return False
        match json.loads(packet):
            case {"fork": number, "sort": sort}:
                for descriptor in descriptors:
                    os.set_inheritable(descriptor, False)
                stream, tickets, mark, output = descriptors
                sockets = socket.socket(fileno=stream), socket.socket(fileno=tickets)
                for each in sockets:
                    each.settimeout(None)  # whatever default a job module has set
                self._fork(number, Sort(sort), *sockets, mark, output)
                os.close(mark)
                os.close(output)
            case {"kill": pid, "signal": number}:
                self._reaper.kill(pid, number)
            case {"ping": True}:
                self._control.send(_packet(pong=True))
        return True

    def _fork(
        self, number: int, sort: Sort, stream: socket.socket, tickets: socket.socket, mark: int, output: int
    ) -> None:
        with stream, tickets:
            try:
                pid = os.fork()
            except OSError as error:
                self._control.send(_packet(not_forked=number, why=str(error)))
                return
            if pid == 0:
                for standard in (1, 2):
                    os.dup2(output, standard)
                os.close(output)
                self._become_child(sort, stream, tickets, mark)
            self._reaper.add(pid)
            self._control.send(_packet(forked=number, pid=pid))

    def _become_child(self, sort: Sort, stream: socket.socket, tickets: socket.socket, mark: int) -> NoReturn:
        """Close what is ours. What job modules opened while they were imported stays open: it is theirs."""
        try:
            process.die_with(self._pid)
            signal.set_wakeup_fd(-1)
            self._control.close()
            os.close(self._deaths)
            os.close(self._wake)
            process.adopt_orphans()
            process.die_before_the_parent()
            process.limit_memory(self._limits.memory)
            process.limit_files(self._limits.files)
            place = self._place.of(os.getpid())
            self._place.let_go()
            _life_of(sort)(stream, tickets, mark, _of_sort(sort, self._kinds), self._limits, place)
        except BaseException:  # noqa: BLE001 - nothing may unwind into the zygote's own loop
            traceback.print_exc()
        finally:
            os._exit(1)


def _life_of(sort: Sort) -> Callable[..., None]:
    if sort is Sort.CPU:
        return live
    from consumer.worker import io_child  # noqa: PLC0415 - with asyncio, which only io children need

    return io_child.live


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
