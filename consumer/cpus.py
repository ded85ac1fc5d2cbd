"""How many CPUs this container may use: the cgroup's quota, which the host's CPU count doesn't know."""

import math
import os
from pathlib import Path

CGROUP_V2 = Path("/sys/fs/cgroup/cpu.max")
CGROUP_V1 = Path("/sys/fs/cgroup/cpu")


def available_cpus(v2: Path = CGROUP_V2, v1: Path = CGROUP_V1) -> int:
    """At least 1; the smaller of the affinity and the quota, the quota rounded up."""
    allowed = len(os.sched_getaffinity(0))
    quota = _quota(v2, v1)
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def _quota(v2: Path, v1: Path) -> float | None:
    try:
        limit, period = v2.read_text().split()
    except (OSError, ValueError):
        try:
            limit = (v1 / "cpu.cfs_quota_us").read_text().strip()
            period = (v1 / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return None if limit in {"max", "-1"} else int(limit) / int(period)
