"""File locks between processes.  Standard library and filelock only."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from common.errors import UserError
from common.files import write_errors

_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}  # a network file system without locks


def lock_file(path: Path) -> Path:
    """The file that is locked for `path`: a sibling, since folders cannot be locked and files may be replaced."""
    return path.with_name(path.name + ".lock")


@contextmanager
def exclusive(path: Path, busy: str) -> Iterator[None]:
    """Lock `path` for this process without waiting; nothing is locked on a file system without locks.

    A killed process releases its lock; the lock file that it leaves behind can be locked again.

    Args:
        path: The file or folder to work on; its parent folder must exist, the path itself need not.
        busy: The error line when another process holds the lock.

    Raises:
        UserError: If another process holds the lock.
        ArtifactError: If the lock file cannot be created.
    """
    lock = FileLock(lock_file(path), blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(busy) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            with write_errors(lock_file(path)):
                raise
    try:
        yield
    finally:
        # Removed while still locked: filelock does not accept a lock on a removed file, so no two processes get in.
        # Windows refuses to remove an open file; there filelock removes it after the release.
        with suppress(OSError):
            lock_file(path).unlink()
        lock.release()
