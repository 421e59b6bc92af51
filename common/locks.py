"""File locks between processes; a lock file says which process holds it.  Standard library and filelock only."""

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from common.errors import UserError
from common.files import create_parents, write_errors

_HOLDER = "process "  # begin of a lock file
_SETTLED_SECONDS = 1.0  # by then who has taken a lock has written its name, and who was giving it back is gone
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}  # a network file system without locks


def lock_file(path: Path) -> Path:
    """The file that is locked for `path`: a sibling, since folders cannot be locked and files may be replaced."""
    return path.with_name(path.name + ".lock")


@contextmanager
def exclusive(
    path: Path, cure: str = "Wait for it, or choose another --out.", wait_seconds: float = 0.0
) -> Iterator[None]:
    """Lock `path` for this process; nothing is locked on a file system without locks.

    A killed process releases its lock; the lock file that it leaves behind can be locked again.  Child processes do not
    hold the lock.  Missing parent folders are created, and removed again if they are empty afterwards.

    Args:
        path: The file or folder to work on; it need not exist.
        cure: What to do when another process holds the lock; ends the error line.
        wait_seconds: How long to wait for another process, at least a second.

    Raises:
        UserError: If another process holds the lock, whose line names that process, its host and its starting time; or
            if the lock file is a file of the user, such as uv.lock.
        ArtifactError: If the lock file, or its folder, cannot be created.
    """
    file = lock_file(path)
    begin = "a folder" if file.is_dir() else _text(file)
    if begin and not begin.startswith(_HOLDER):  # it would be overwritten and removed
        raise UserError(f"{file} is not a lock file, and {path} would need one of that name. Choose another name.")
    lock = FileLock(file, timeout=max(wait_seconds, _SETTLED_SECONDS), fallback_to_soft=False)
    created = create_parents(path)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(f"{path} is in use by {_text(file).strip() or 'another process'}. {cure}") from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            with write_errors(file):
                raise
    try:
        if lock.is_locked:
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            with suppress(OSError):  # a full disk: the lock holds, only its text is missing
                file.write_text(f"{_HOLDER}{os.getpid()} on {socket.gethostname()} since {since}\n", encoding="utf-8")
        yield
    finally:
        # Removed while still locked: filelock does not accept a lock on a removed file, so no two processes get in.
        # Windows refuses to remove an open file; there filelock removes it after the release.
        with suppress(OSError):
            file.unlink()
        lock.release()
        for folder in created:
            with suppress(OSError):  # not empty
                folder.rmdir()


def _text(file: Path) -> str:
    """What a lock file says; empty if it cannot be read: released in the meantime, or, on Windows, locked."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(200)
    except OSError:  # the errors of creating it say more
        return ""
