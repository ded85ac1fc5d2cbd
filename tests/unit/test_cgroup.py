import os
from pathlib import Path

import pytest

from consumer.cgroup import Cgroup

CPUS = len(os.sched_getaffinity(0))


def cgroup(tmp_path: Path, own: str, **files: str) -> Cgroup:
    """A tree of groups; a file's name has its folders separated by two underscores."""
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        path = tmp_path.joinpath("root", *name.split("__"))
        path = path.with_name(path.name.replace("_", ".", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return Cgroup(tmp_path / "root", tmp_path / "own")


def test_without_groups_there_is_no_limit(tmp_path: Path) -> None:
    nowhere = Cgroup(tmp_path / "none", tmp_path / "none")
    assert (nowhere.memory(), nowhere.cpus()) == (0, CPUS)


@pytest.mark.parametrize(("text", "bytes_"), [("536870912", 536_870_912), ("max", 0)])
def test_the_memory_limit_of_version_2(tmp_path: Path, text: str, bytes_: int) -> None:
    assert cgroup(tmp_path, "0::/\n", memory_max=text).memory() == bytes_


@pytest.mark.parametrize(("text", "bytes_"), [("536870912", 536_870_912), ("9223372036854771712", 0)])
def test_the_memory_limit_of_version_1(tmp_path: Path, text: str, bytes_: int) -> None:
    assert cgroup(tmp_path, "4:memory:/\n0::/\n", memory__memory_limit_in_bytes=text).memory() == bytes_


def test_the_smallest_limit_of_all_groups_above_ours_holds(tmp_path: Path) -> None:
    tree = cgroup(tmp_path, "0::/a/b\n", a__b__memory_max="900", a__memory_max="700", memory_max="max")
    assert tree.memory() == 700


def test_a_container_whose_path_is_the_hosts_reads_its_own_root(tmp_path: Path) -> None:
    tree = cgroup(
        tmp_path,
        "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
        memory__memory_limit_in_bytes="700",
        cpu__cpu_cfs_quota_us="50000",
        cpu__cpu_cfs_period_us="100000",
    )
    assert (tree.memory(), tree.cpus()) == (700, 1)


@pytest.mark.parametrize(("text", "cpus"), [("50000 100000", 1), ("max 100000", CPUS), ("100000000 100000", CPUS)])
def test_the_cpu_quota_of_version_2_is_rounded_up_and_never_more_than_there_are(
    tmp_path: Path, text: str, cpus: int
) -> None:
    assert cgroup(tmp_path, "0::/a\n", a__cpu_max=text).cpus() == cpus


def test_the_cpu_quota_of_version_1_may_be_none(tmp_path: Path) -> None:
    tree = cgroup(tmp_path, "3:cpu:/a\n", cpu__a__cpu_cfs_quota_us="-1", cpu__a__cpu_cfs_period_us="100000")
    assert tree.cpus() == CPUS
