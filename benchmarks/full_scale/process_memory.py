"""Memory of this process's descendants, by rank, from Linux's /proc.

Proportional set sizes, so that shared pages count once.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import UserError

_PROC = Path("/proc")
_FIELDS = {b"Pss_Anon:": "own", b"Pss_Shmem:": "own", b"Pss_File:": "mapped"}
NO_RANK = ""  # of processes without RANK: launchers, and commands of one process


@dataclass
class Peak:
    """The most that was seen at one moment, in bytes.

    Attributes:
        own: By rank, anonymous and shared memory of a rank's processes, children included: what the machine cannot
            drop.
        all_own: The same of all processes together.
        all_mapped: Pages of files that are mapped, of all processes together: the machine drops them when it needs
            memory.
    """

    own: dict[str, int] = field(default_factory=dict)
    all_own: int = 0
    all_mapped: int = 0

    def see(self) -> list[int]:
        """Look at all descendants once; their process ids."""
        own: dict[str, int] = defaultdict(int)
        mapped = 0
        seen = descendants(os.getpid())
        for pid in seen:
            try:
                sizes = _sizes(pid)
                own[_rank(pid)] += sizes["own"]
                mapped += sizes["mapped"]
            except (ProcessLookupError, FileNotFoundError, PermissionError):  # it has ended
                continue
        for rank, size in own.items():
            self.own[rank] = max(size, self.own.get(rank, 0))
        self.all_own, self.all_mapped = max(self.all_own, sum(own.values())), max(self.all_mapped, mapped)
        return seen


def check_proc() -> None:
    """Raise UserError where memory cannot be measured."""
    try:
        sizes = _sizes(os.getpid())
    except OSError:
        sizes = {}
    if not sizes.get("own"):
        raise UserError("full_scale measures memory by /proc/PID/smaps_rollup: run it on Linux 5.9 or later.")


def descendants(ancestor: int) -> list[int]:
    """Process ids of all children, their children, and so on."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, parent in _parents():
        children[parent].append(pid)
    found, open_ = [], [ancestor]
    while open_:
        below = children.get(open_.pop(), [])
        found += below
        open_ += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                continue
            yield int(folder.name), int(text.rpartition(")")[2].split()[1])  # a name may hold brackets and spaces


def _rank(pid: int) -> str:
    """What torchrun gave the process, or the process that started it, as RANK."""
    for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == b"RANK":
            return value.decode()
    return NO_RANK


def _sizes(pid: int) -> dict[str, int]:
    sizes = {"own": 0, "mapped": 0}
    for line in (_PROC / str(pid) / "smaps_rollup").read_bytes().splitlines():
        name, *values = line.split()
        if name in _FIELDS:
            sizes[_FIELDS[name]] += int(values[0]) * 1024
    return sizes
