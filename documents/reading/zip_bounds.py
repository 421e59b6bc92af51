"""Bounds on what a zip file may unpack to, checked before anything is unpacked."""

import io
import zipfile

from common.errors import DataError

MAX_UNPACKED_BYTES = 512 * 2**20
MAX_PART_BYTES = 64 * 2**20  # of an XML part, whose tree takes about ten times as much memory
MAX_PARTS = 10_000


def check_zip(data: bytes, name: str) -> list[str]:
    """The names of the files in a zip file.

    `zipfile` never unpacks more of a file than its declared size, so that these sizes bound the memory.

    Raises:
        DataError: If it is broken or encrypted, or unpacks to too much.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            parts = packed.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise DataError(f"{name} is a broken zip file ({error}): save it again.") from error
    if any(part.flag_bits & 1 for part in parts):
        raise DataError(f"{name} is encrypted: save it without a password.")
    unpacked = sum(part.file_size for part in parts)
    markup = max((part.file_size for part in parts if part.filename.lower().endswith((".xml", ".rels"))), default=0)
    if unpacked > MAX_UNPACKED_BYTES or markup > MAX_PART_BYTES or len(parts) > MAX_PARTS:
        raise DataError(
            f"{name} unpacks to {unpacked / 2**20:,.0f} MiB in {len(parts):,} files, the largest text "
            f"{markup / 2**20:,.0f} MiB; allowed are {MAX_UNPACKED_BYTES >> 20} MiB, {MAX_PARTS:,} files and "
            f"{MAX_PART_BYTES >> 20} MiB. Is it a zip bomb? Split a real document."
        )
    return [part.filename for part in parts]
