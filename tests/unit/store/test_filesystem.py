from pathlib import Path

import pytest

from consumer.core.errors import SettingsError
from consumer.store.filesystem import MOUNTS, refuse_network

TABLE = """\
/dev/vda / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /srv/jobs nfs4 rw,vers=4.2 0 0
/dev/vdb /srv/jobs/local ext4 rw 0 0
//server/share /srv/win\\040share cifs rw 0 0
server:/export /srv/bücher nfs rw 0 0
host /mnt/host 9p rw,trans=virtio 0 0
host /mnt/vm virtiofs rw 0 0
user@server: /mnt/ssh fuse.sshfs rw 0 0
fuse-overlayfs /mnt/rootless fuse.fuse-overlayfs rw 0 0
/dev/sdb1 /mnt/stick fuseblk rw 0 0
server:/export /mnt/covered nfs rw 0 0
/dev/vdc /mnt/covered xfs rw 0 0
server:/export /srv/job nfs rw 0 0
"""


@pytest.mark.parametrize(
    "path",
    ["/jobs.sqlite3", "/srv/jobs/local/a", "/srv/jobs2/a", "/mnt/rootless/a", "/mnt/stick/a", "/mnt/covered/a"],
)
def test_a_file_on_a_disk_of_this_machine_is_taken(path: str) -> None:
    refuse_network(path, TABLE)


@pytest.mark.parametrize(
    ("path", "filesystem"),
    [
        ("/srv/jobs/a", "nfs4"),
        ("/srv/jobs/folder/that/isnt/there/a", "nfs4"),
        ("/srv/jobs/local/../a", "nfs4"),
        ("/srv/win share/a", "cifs"),
        ("/srv/bücher/a", "nfs"),
        ("/mnt/host/a", "9p"),
        ("/mnt/vm/a", "virtiofs"),
        ("/mnt/ssh/a", "fuse.sshfs"),
        ("/srv/job/a", "nfs"),
    ],
)
def test_a_file_on_another_machine_s_disk_is_refused_in_a_sentence(path: str, filesystem: str) -> None:
    with pytest.raises(SettingsError, match=f"the store file .* is on {filesystem}, .*: put it on a local disk"):
        refuse_network(path, TABLE)


def test_a_link_counts_where_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "jobs").symlink_to("/srv/jobs")
    with pytest.raises(SettingsError, match="nfs4"):
        refuse_network(str(tmp_path / "jobs" / "a"), TABLE)


def test_this_machine_s_own_table_can_be_read(tmp_path: Path) -> None:
    refuse_network(str(tmp_path / "jobs.sqlite3"), MOUNTS.read_text())
