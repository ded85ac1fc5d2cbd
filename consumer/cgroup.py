"""What this container may use. The host's own figures don't know it; the kernel's control groups do."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
_NO_LIMIT = 2**60
"""Version 1 writes "none" as a number near 2**63."""


class Cgroup:
    """Both versions, and both at once. A limit of any group above ours holds too, so the smallest counts."""

    def __init__(self, root: Path = ROOT, own: Path = OWN) -> None:
        self._root = root
        self._own = own

    def cpus(self) -> int:
        """At least 1; the smaller of the affinity and the quota, the quota rounded up."""
        quotas = [*self._quotas_v2(), *self._quotas_v1()]
        return max(1, min([len(os.sched_getaffinity(0)), *map(math.ceil, quotas)]))

    def memory(self) -> int:
        """Bytes; 0 where there is no limit."""
        written = [*self._read("", "memory.max"), *self._read("memory", "memory.limit_in_bytes")]
        limits = [int(text) for text in written if text.isdigit()]
        return min((limit for limit in limits if limit < _NO_LIMIT), default=0)

    def _quotas_v2(self) -> Iterator[float]:
        for text in self._read("", "cpu.max"):
            limit, _, period = text.partition(" ")
            if limit.isdigit() and period.isdigit():
                yield int(limit) / int(period)

    def _quotas_v1(self) -> Iterator[float]:
        limits, periods = self._read("cpu", "cpu.cfs_quota_us"), self._read("cpu", "cpu.cfs_period_us")
        for limit, period in zip(limits, periods, strict=False):
            if limit.isdigit() and period.isdigit():
                yield int(limit) / int(period)

    def _read(self, controller: str, name: str) -> Iterator[str]:
        for folder in self._folders(controller):
            try:
                yield (folder / name).read_text().strip()
            except OSError:
                continue

    def _folders(self, controller: str) -> Iterator[Path]:
        """From our own group up to the root. In a container the root often is our own group, whatever its path says."""
        mount = self._root / controller
        path = Path(self._path(controller).lstrip("/"))
        yield from (mount / part for part in (path, *path.parents))

    def _path(self, controller: str) -> str:
        """Lines such as `4:cpu,cpuacct:/group`; version 2 has one, of no controller."""
        try:
            lines = [line.partition(":")[2].partition(":") for line in self._own.read_text().splitlines()]
        except OSError:
            return ""
        return next((path for controllers, _, path in lines if controller in controllers.split(",")), "")
