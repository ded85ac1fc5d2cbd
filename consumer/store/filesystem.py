"""Whether a file is on a disk of this machine: SQLite's locks and shared memory hold nowhere else."""

import re
from pathlib import Path

from consumer.core.errors import SettingsError

MOUNTS = Path("/proc/self/mounts")
NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs"}
    | {"prl_fs", "vboxsf", "virtiofs"}  # what a virtual machine has of its host
)
FUSE = "fuse."
LOCAL_FUSE = frozenset({"fuse.fuse-overlayfs"})
"""The root of a container without root: everything else behind FUSE may be anywhere."""
_ESCAPED = re.compile(r"\\([0-7]{3})")
"""White space and backslashes in the table of mounts."""


def refuse_network(path: str, mounts: str) -> None:
    """`mounts` as in /proc/self/mounts. Raises SettingsError, since no waiting moves a file."""
    filesystem = _filesystem(str(Path(path).resolve()), mounts)
    if filesystem in NETWORK or (filesystem.startswith(FUSE) and filesystem not in LOCAL_FUSE):
        raise SettingsError(
            f"the store file {path} is on {filesystem}, where SQLite can lose data: put it on a local disk, "
            "or use postgresql://user:password@host/database"
        )


def _filesystem(path: str, mounts: str) -> str:
    """The type of the nearest mount above; of two at one place, the later one covers the earlier."""
    nearest, found = "", ""
    for line in mounts.splitlines():
        _, place, filesystem = line.split(" ")[:3]
        place = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), place)
        if len(place) >= len(nearest) and (place == "/" or f"{path}/".startswith(f"{place}/")):
            nearest, found = place, filesystem
    return found
