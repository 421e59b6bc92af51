"""What a process can still allocate: limits of containers count."""

from pathlib import Path

import pytest
import torch

from models.device_memory import _cgroup_rooms, available_bytes


def test_limits_of_containers_count(tmp_path) -> None:
    def group(path: str, limit: str, used: int, files: int, version_1: bool = False) -> None:
        folder = tmp_path / "root" / path
        folder.mkdir(parents=True, exist_ok=True)
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version_1 else ("memory.max", "memory.current")
        for name, value in zip(names, (limit, used), strict=True):
            (folder / name).write_text(f"{value}\n")
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {files}\n")

    membership = tmp_path / "cgroup"
    membership.write_text("0::/slurm/job_1/step_0\n")
    assert _cgroup_rooms(membership, tmp_path / "root") == []
    group("slurm/job_1", "9000", 2000, 500)
    group("slurm/job_1/step_0", "max", 1000, 0)
    group("slurm", "20000", 5000, 0)
    assert sorted(_cgroup_rooms(membership, tmp_path / "root")) == [7500, 15000]
    membership.write_text("3:cpu,cpuacct:/a\n7:memory:/docker/x\n")
    group("memory/docker/x", "4000", 1000, 250, version_1=True)
    assert _cgroup_rooms(membership, tmp_path / "root") == [3250]
    assert _cgroup_rooms(tmp_path / "none", tmp_path / "root") == []


def test_this_machine_says_what_is_free() -> None:
    if not Path("/proc/meminfo").is_file():
        pytest.skip("not Linux")
    free = available_bytes(torch.device("cpu"))
    assert 2**20 < free < 2**50
