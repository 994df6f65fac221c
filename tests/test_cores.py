"""How many threads are used, in folders that look like those of other machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from satura.backend import cores, target
from satura.backend.cores import cgroup_quota, physical_cores, usable_threads
from satura.rewrite.errors import UnsupportedError


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


V2 = "0::/user/job\n"
V1 = "5:memory:/box\n4:cpu,cpuacct:/box\n3:cpuset:/\n0::/\n"


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        (V2, {"user/job/cpu.max": "150000 100000\n"}, 1.5),
        (V2, {"user/job/cpu.max": "max 100000\n"}, None),
        (V2, {"user/job/cpu.max": "max 100000\n", "user/cpu.max": "50000 100000"}, 0.5),
        (V2, {"user/job/cpu.max": "400000 100000", "user/cpu.max": "200000 100000"}, 2.0),
        (V2, {"other/cpu.max": "100000 100000"}, None),
        (V2, {"cpu.max": "300000 100000"}, 3.0),  # a container's own root
        ("0::/../outside\n", {"cpu.max": "300000 100000"}, 3.0),
        ("0::/job\n", {"unified/job/cpu.max": "100000 50000"}, 2.0),
        (V1, {"cpu,cpuacct/box/cpu.cfs_quota_us": "250000\n",
              "cpu,cpuacct/box/cpu.cfs_period_us": "100000\n"}, 2.5),
        (V1, {"cpu/box/cpu.cfs_quota_us": "-1\n", "cpu/box/cpu.cfs_period_us": "100000\n",
              "cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1.0),
        (V1, {"cpu/box/cpu.cfs_quota_us": "-1\n", "cpu/box/cpu.cfs_period_us": "100000\n"}, None),
        (V1, {"cpuset/cpu.cfs_quota_us": "100000", "cpuset/cpu.cfs_period_us": "100000"}, None),
        ("3:cpuset:/tight\n4:cpu:/box\n", {"cpu/tight/cpu.cfs_quota_us": "100000",
              "cpu/tight/cpu.cfs_period_us": "100000"}, None),
        (V2, {"user/job/cpu.max": "100000 0"}, None),
        (V2, {"user/job/cpu.max": "nonsense"}, None),
        ("", {"cpu.max": "100000 100000"}, None),
    ],
)  # fmt: skip
def test_quotas_of_cgroups(
    tmp_path: Path, membership: str, files: dict[str, str], expected: float | None
) -> None:
    root = written(tmp_path / "cgroup", files)
    own = tmp_path / "own"
    own.write_text(membership)
    assert cgroup_quota(root, own) == expected
    assert cgroup_quota(root, tmp_path / "missing") is None


def test_siblings_are_one_core(tmp_path: Path) -> None:
    siblings = ["0,4", "1,5", "2,6", "3,7"] * 2
    name = "cpu{}/topology/thread_siblings_list"
    root = written(tmp_path, {name.format(cpu): text for cpu, text in enumerate(siblings)})
    assert physical_cores(range(8), root) == 4
    assert physical_cores([0, 4], root) == 1
    assert physical_cores([0, 5, 6], root) == 3
    assert physical_cores([0, 9], root) is None
    assert physical_cores([], root) is None


@pytest.mark.parametrize(
    ("cpus", "physical", "quota", "asked", "expected"),
    [
        (8, 8, None, "", 8),
        (8, 4, None, "", 4),
        (8, None, None, "", 8),
        (8, 8, 2.5, "", 3),
        (8, 8, 0.2, "", 1),
        (8, 4, 6.0, "3", 3),
        (2, 2, None, "64", 2),
    ],
)
def test_the_least_of_all_limits(
    cpus: int, physical: int | None, quota: float | None, asked: str, expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(cores, "_allowed_cpus", lambda: set(range(cpus)))
    monkeypatch.setattr(cores, "physical_cores", lambda cpus: physical)
    monkeypatch.setattr(cores, "cgroup_quota", lambda: quota)
    monkeypatch.setenv("SATURA_THREADS", asked)
    assert usable_threads() == expected
    assert target.threads_for(None) == usable_threads()


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5", "²"])
def test_what_is_not_a_number_of_threads_is_refused(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SATURA_THREADS", asked)
    with pytest.raises(UnsupportedError, match="SATURA_THREADS is"):
        usable_threads()
