"""Removal of stores that no start has opened for a month.

A store that a process reads is kept: it holds a shared lock on its records. The folder's time of change tells when a
store was opened last. On Windows nothing is removed.
"""

import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from common.errors import ArtifactError, UserError
from common.locks import exclusive
from common.progress import in_bytes, say

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

UNUSED_DAYS = 30
_NAME = re.compile("[0-9a-f]{32}")


def hold(descriptor: int) -> None:
    """Keep a store from being removed until this descriptor of its records is closed."""
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def remove_unused(root: Path, records: str) -> None:
    """Remove the stores that no start has opened for `UNUSED_DAYS`, with a line for each.

    Args:
        root: Folder of the cache.
        records: Pattern of the file that `hold` locks, of all versions. By it a store is known; it is removed last:
            what an interrupted removal leaves is removed later.
    """
    stores = [file for file in root.glob(f"*/{records}") if _NAME.fullmatch(file.parent.name)]
    for file in stores if fcntl is not None else ():
        with suppress(UserError, ArtifactError, OSError):  # read, written, without locks, or of somebody else
            if _is_unused(file.parent):
                _remove(file.parent, file)


def _is_unused(folder: Path) -> bool:
    return time.time() - folder.stat().st_mtime > UNUSED_DAYS * 86400


def _remove(folder: Path, records: Path) -> None:
    """Raises UserError if a process writes it, OSError if one holds it, or it cannot be removed."""
    with exclusive(folder), records.open("rb+") as file:  # NFS locks only what is open for writing
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_unused(folder):  # opened in the meantime
            return
        files = sorted((each for each in folder.rglob("*") if each.is_file()), key=lambda each: each == records)
        freed = sum(each.stat().st_size for each in files)
        for each in files:
            each.unlink()
        shutil.rmtree(folder)
    say(f"{folder}: removed, since no start has opened it for {UNUSED_DAYS} days ({in_bytes(freed)}).")
