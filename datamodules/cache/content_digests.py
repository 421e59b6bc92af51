"""SHA-256 of large files, remembered with size and time of change, so that an unchanged file is not read again."""

import json
import time
from contextlib import suppress
from hashlib import sha256 as sha256_of
from pathlib import Path

from common.errors import ArtifactError
from common.files import sha256, write_json

SMALL_BYTES = 32 << 20  # of files: less is quicker to read again than to look after
DIGESTS = "digests"  # folder in a cache
SETTLED_SECONDS = 2.0  # a file that changed this shortly before it was read may change again within a tick of its clock


def content_digest(file: Path, cache: str | None) -> str:
    """SHA-256 of a file's content, in hexadecimal digits.

    Args:
        file: The file; one below `SMALL_BYTES` is read.
        cache: Folder whose subfolder `digests` remembers them; it need not exist, and where it cannot be written
            nothing is remembered. None reads every file.
    """
    if cache is None or file.stat().st_size < SMALL_BYTES:
        return sha256(file)
    place = file.resolve()
    kept = Path(cache) / DIGESTS / f"{sha256_of(str(place).encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"
    before = place.stat()
    state = {"file": str(place), "bytes": before.st_size, "mtime_ns": before.st_mtime_ns, "inode": before.st_ino}
    with suppress(OSError, ValueError, TypeError, KeyError):  # missing, or not ours
        known = json.loads(kept.read_text(encoding="utf-8"))
        if {**known, "sha256": None} == {**state, "sha256": None}:
            return str(known["sha256"])
    digest, after = sha256(place), place.stat()
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    if same and time.time() - after.st_mtime > SETTLED_SECONDS:
        with suppress(ArtifactError):  # a folder that cannot be written: the next start reads the file again
            write_json(kept, {**state, "sha256": digest})
    return digest
