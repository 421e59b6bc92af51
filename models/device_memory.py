"""Memory that a process can still allocate: of its GPU, or of the machine within its cgroup limits (Linux)."""

from pathlib import Path

import torch

CGROUPS = Path("/sys/fs/cgroup")


def available_bytes(device: torch.device) -> int | None:
    """Bytes that this process can still allocate on a device; None if the system does not say (no GPU, not Linux)."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device)
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    machine = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return min([*machine, *_cgroup_rooms(Path("/proc/self/cgroup"), CGROUPS)], default=None)


def _cgroup_rooms(membership: Path, root: Path) -> list[int]:
    """Bytes left under every memory limit of this process (containers, SLURM); pages of files count as free.

    Args:
        membership: /proc/self/cgroup: one line "number:controllers:path" per hierarchy, without controllers in version
            2.
        root: Where the hierarchies are mounted.
    """
    rooms = []
    for line in membership.read_text().splitlines() if membership.is_file() else []:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        top = root / controllers
        limit, usage = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
        )
        inside = top / path.lstrip("/")
        for group in (inside, *(parent for parent in inside.parents if parent == top or top in parent.parents)):
            try:
                most, used = (group / limit).read_text().strip(), int((group / usage).read_text())
                statistics = dict(row.split() for row in (group / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):  # the root has no limit, and a container may not see the groups around it
                continue
            if most != "max":
                rooms.append(int(most) - used + int(statistics.get("inactive_file", 0)))
    return rooms
