"""The process that children are forked from: it imports the job modules once, and then forks, kills and reaps.

Not multiprocessing's forkserver, which imports the parent's __main__ into children and hides how they ended.
It is started with one file descriptor, a socket to the parent, over which both send JSON packets:

    from the parent                                         from the zygote
    {modules, path, memory, result, depth, parent} (first)  {catalogue: piece} ..., {ready} | {error}
    {fork: n} with the child's two sockets                  {forked: n, pid} | {not_forked: n, why}
    {kill: pid, signal}                                     {died: pid, status, cpu, memory}
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

from consumer.worker import catalogue, process
from consumer.worker.child import live
from consumer.worker.execute import Limits
from consumer.worker.loading import Kind, LoadError, load

PACKET_LIMIT = 64 * 1024
_PIECE = 8 * 1024
_SOCKETS_OF_A_CHILD = 2
_KIBIBYTE = 1024


def main(control: socket.socket) -> None:
    control.set_inheritable(False)
    packet = control.recv(PACKET_LIMIT)
    if not packet:
        return
    order = json.loads(packet)
    process.die_with(order["parent"])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    limits = Limits(order["memory"], order["result"], order["depth"])
    try:
        kinds = load(order["modules"], order["path"])
        _check_memory(limits)
    except LoadError as error:
        control.send(_packet(error=str(error)))
        return
    _offer(control, kinds)
    gc.collect()
    gc.freeze()  # so that collections in children don't touch, and thereby copy, pages that all share
    Zygote(control, kinds, limits).serve()


def _check_memory(limits: Limits) -> None:
    used = process.address_space()
    if limits.memory and limits.memory < used + used // 4:
        raise LoadError(
            f"the memory limit of a child is {limits.memory} bytes of address space, and the job modules take "
            f"{used} of them before any job runs: raise it to {2 * used} at least, or set 0 for no limit"
        )


def _offer(control: socket.socket, kinds: Mapping[str, Kind]) -> None:
    """In pieces, for a packet has a limit, and schemas may be large."""
    text = catalogue.encode(kind.offer for kind in kinds.values()).decode()
    for start in range(0, len(text), _PIECE):
        control.send(_packet(catalogue=text[start : start + _PIECE]))
    control.send(_packet(ready=True))


def _packet(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


class Zygote:
    def __init__(self, control: socket.socket, kinds: Mapping[str, Kind], limits: Limits) -> None:
        self._control = control
        self._kinds = kinds
        self._limits = limits
        self._pid = os.getpid()
        self._children: set[int] = set()
        self._deaths, self._wake = os.pipe()

    def serve(self) -> None:
        """Until the parent lets go of the socket; then no child survives."""
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            while self._turn():
                pass
        except ConnectionError:
            pass
        for pid in self._children:
            process.kill_group(pid)
        for pid in self._children:
            os.waitpid(pid, 0)

    def _turn(self) -> bool:
        control = self._control.fileno()
        ready, _, _ = select.select([control, self._deaths], [], [])
        if self._deaths in ready:
            os.read(self._deaths, PACKET_LIMIT)
            self._reap()
        return control not in ready or self._obey()

    def _obey(self) -> bool:
        packet, descriptors, _, _ = socket.recv_fds(self._control, PACKET_LIMIT, _SOCKETS_OF_A_CHILD)
        if not packet:
            return False
        match json.loads(packet):
            case {"fork": number}:
                for descriptor in descriptors:
                    os.set_inheritable(descriptor, False)
                self._fork(number, *(socket.socket(fileno=descriptor) for descriptor in descriptors))
            case {"kill": pid, "signal": number}:
                if pid in self._children:
                    process.kill_group(pid, number)
        return True

    def _fork(self, number: int, stream: socket.socket, tickets: socket.socket) -> None:
        with stream, tickets:
            try:
                pid = os.fork()
            except OSError as error:
                self._control.send(_packet(not_forked=number, why=str(error)))
                return
            if pid == 0:
                self._become_child(stream, tickets)
            self._children.add(pid)
            self._control.send(_packet(forked=number, pid=pid))

    def _become_child(self, stream: socket.socket, tickets: socket.socket) -> NoReturn:
        """Close what is ours. What job modules opened while they were imported stays open: it is theirs."""
        try:
            process.die_with(self._pid)
            signal.set_wakeup_fd(-1)
            self._control.close()
            os.close(self._deaths)
            os.close(self._wake)
            live(stream, tickets, self._kinds, self._limits)
        except BaseException:  # noqa: BLE001 - nothing may unwind into the zygote's own loop
            traceback.print_exc()
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """A dead child keeps its pid until it is reaped: its group can be killed before without hitting others."""
        while self._children:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None:
                return
            if dead.si_pid in self._children:
                process.kill_group(dead.si_pid)
            pid, status, usage = os.wait4(dead.si_pid, 0)
            if pid in self._children:
                self._children.discard(pid)
                cpu, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _KIBIBYTE
                self._control.send(_packet(died=pid, status=status, cpu=cpu, memory=memory))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
