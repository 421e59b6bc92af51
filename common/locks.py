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

_HOLDER = b"process "  # begin of a lock file
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
        wait_seconds: How long to wait for another process; 0 does not wait.

    Raises:
        UserError: If another process holds the lock, whose line names that process, its host and its starting time; or
            if the lock file is a file of the user, such as uv.lock.
        ArtifactError: If the lock file, or its folder, cannot be created.
    """
    _refuse_foreign(path)
    lock = FileLock(lock_file(path), timeout=wait_seconds, blocking=wait_seconds > 0, fallback_to_soft=False)
    created = create_parents(path)
    try:
        _acquire(lock, path, cure)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            with write_errors(lock_file(path)):
                raise
    try:
        if lock.is_locked:
            _record_holder(path)
        yield
    finally:
        # Removed while still locked: filelock does not accept a lock on a removed file, so no two processes get in.
        # Windows refuses to remove an open file; there filelock removes it after the release.
        with suppress(OSError):
            lock_file(path).unlink()
        lock.release()
        for folder in created:
            with suppress(OSError):  # not empty
                folder.rmdir()


def _acquire(lock: FileLock, path: Path, cure: str) -> None:
    """Take the lock, or say who holds it.

    A lock file without a name is that of a process that has just taken the lock, or was removed by one that was giving
    it back while this one opened it. Then it is tried again.
    """
    deadline = time.monotonic() + _SETTLED_SECONDS
    while True:
        try:
            lock.acquire()
        except Timeout as error:
            holder = _holder(path)
            if holder or time.monotonic() > deadline:
                raise UserError(f"{path} is in use by {holder or 'another process'}. {cure}") from error
            time.sleep(0.01)
        else:
            return


def _record_holder(path: Path) -> None:
    """Write this process into the lock file that it holds."""
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):  # a full disk: the lock holds, only its text is missing
        lock_file(path).write_text(f"process {os.getpid()} on {socket.gethostname()} since {since}\n", encoding="utf-8")


def _refuse_foreign(path: Path) -> None:
    """Check that the lock file, which will be overwritten and removed, is missing or from `_record_holder`."""
    file = lock_file(path)
    try:
        with file.open("rb") as stream:
            begin = stream.read(len(_HOLDER))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # the errors of creating it say more; Windows does not let others read a locked file
    except IsADirectoryError:
        begin = b"a folder"
    if begin and begin != _HOLDER:
        raise UserError(f"{file} is not a lock file, and {path} would need one of that name. Choose another name.")


def _holder(path: Path) -> str:
    """The process that holds a lock, as it wrote itself into the lock file; empty if that cannot be read."""
    try:
        return lock_file(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):  # released in the meantime; Windows does not let others read a locked file
        return ""
