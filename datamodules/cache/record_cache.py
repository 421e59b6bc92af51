"""The folder of stored records: each set of input files is read once and then found by the digests of its content.

    cache/questions/
        digests/      of input files, by path, size and time of change
        <digits>/     one set of records: `datamodules.cache.arrow_records`, and cache.json, which is written last
            derived/  what was computed of all records under certain options

Small inputs are read anew at every start, and nothing is written. Everything here can be deleted at any time; a store
that no start has opened for a month is removed when another one is written.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from common.errors import UserError
from common.files import read_json, sha256, whole_folder, write_atomically
from common.locks import exclusive, lock_file
from common.progress import in_bytes, say
from common.sealed_json import fingerprint, unsealed, write_sealed
from datamodules.cache import content_digests
from datamodules.cache.arrow_records import PASSAGES, RECORDS, Records, RecordWriter
from datamodules.cache.content_digests import content_digest
from datamodules.cache.unused_caches import remove_unused

DEFAULT = "cache/questions"
FORMAT = 3  # of the folder; increase it when what is stored changes its meaning
WAIT_SECONDS = 24 * 3600.0  # for another process that stores the same files
_ABOUT, _DERIVED = "cache.json", "derived"
_DIGITS = 32  # of a SHA-256 in names
_ROOT = Path(__file__).parents[2]
_READING = (
    "common/records.py",
    "common/gold_copies.py",
    "common/answer_metrics.py",
    "datamodules/formats/**/*.py",
    "datamodules/cache/*.py",
)
_DRAWING = (
    "datamodules/*.py",
    "datamodules/examples/*.py",
    "models/drrag/triple_tokenizer.py",
    "models/text_formats.py",
)

Arrays = dict[str, NDArray[Any]]


class CachedRecords:
    """Records, and the place of the results computed from them.

    Args:
        records: The records.
        name: Identifies their content and the code that read it, where there is a cache.
        folder: Where they are stored; None if they are in memory.
        note: What was found when they were written, JSON types only.
    """

    def __init__(self, records: Records, name: str, folder: Path | None, note: Any = None) -> None:
        self.records, self.name, self.folder, self.note = records, name, folder, note

    def derived(self, key: Mapping[str, Any], compute: Callable[[], Arrays]) -> Arrays:
        """Arrays computed of the records; of stored ones, read again if they were computed before.

        Args:
            key: All that they depend on beside the records, JSON types only.
            compute: Computes them.

        Raises:
            ArtifactError: If they cannot be written.
        """
        if self.folder is None:
            return compute()
        file = self.place(key).with_suffix(".npz")
        try:
            with file.open("rb") as stream, np.load(stream) as kept:
                return dict(kept)
        except Exception as error:  # not computed yet; or whatever NumPy makes of a damaged file
            if not isinstance(error, FileNotFoundError):
                say(f"{file} is damaged: computed again.")
            arrays = compute()
            write_atomically(file, lambda temporary: _save(temporary, arrays))
            return arrays

    def place(self, key: Mapping[str, Any]) -> Path:
        """Folder for a result that depends on the records and `key` alone. For stored records only.

        Args:
            key: All that it depends on beside the records, JSON types only.
        """
        if self.folder is None:
            raise ValueError("these records are in memory")
        return self.folder / _DERIVED / fingerprint([self.name, key, _code(_DRAWING)])[:_DIGITS]


def stored(
    cache: str | None, inputs: Sequence[Path], key: Mapping[str, Any], write: Callable[[RecordWriter], Any], what: str
) -> CachedRecords:
    """Records of input files, read from the cache if it has them, else written to it.

    Args:
        cache: Folder of the cache; None keeps the records in memory.
        inputs: The files.
        key: What else the records depend on, JSON types only.
        write: Writes the records; what it returns, JSON types only, is their note.
        what: The records' name for messages, such as `training questions`.

    Raises:
        ArtifactError: If the cache cannot be written.
    """
    root = Path(cache) if cache is not None and is_large(inputs) else None
    digests = [content_digest(file, cache) for file in inputs] if cache is not None else []
    name = fingerprint([FORMAT, digests, key, _code(_READING)])[:_DIGITS]
    if root is None:
        with RecordWriter(None) as writer:
            note = write(writer)
        return CachedRecords(writer.records(), name, None, note)
    folder = root / name
    found, _ = _opened(folder)
    if found is None:
        with _alone(folder):
            found, damage = _opened(folder)  # perhaps by another process in the meantime
            if found is None:
                if damage:
                    say(f"{folder} is damaged ({damage}): the {what} are read again.")
                found = _store(folder, inputs, write, what)
    return CachedRecords(found, name, folder, _about(folder)["note"])


def is_large(inputs: Sequence[Path]) -> bool:
    """Whether files are too large for every process to read them anew."""
    return sum(file.stat().st_size for file in inputs) >= content_digests.SMALL_BYTES


def _opened(folder: Path) -> tuple[Records | None, str]:
    """The records in a folder, or what is wrong with them; neither if there is no folder."""
    if not folder.exists():
        return None, ""
    try:
        about = _about(folder)
        sizes = {name: (folder / name).stat().st_size for name in (RECORDS, PASSAGES)}
        if about["bytes"] != sizes:
            return None, f"files of {about['bytes']} bytes have {sizes}"
        if about["sha256"] != sha256(folder / RECORDS):  # each batch of PASSAGES has a checksum in it
            return None, f"{RECORDS} has another sha256"
        return Records.opened(folder), ""
    except (UserError, OSError, ValueError, MemoryError, pa.ArrowException) as error:
        return None, next(iter(str(error).splitlines()), type(error).__name__)


def _about(folder: Path) -> dict[str, Any]:
    return unsealed(folder / _ABOUT, read_json(folder / _ABOUT, ""), "")


def _alone(folder: Path) -> AbstractContextManager[None]:
    if lock_file(folder).exists():
        say(f"{folder}: waiting for another process that reads the same files.")
    return exclusive(folder, wait_seconds=WAIT_SECONDS)


def _store(folder: Path, inputs: Sequence[Path], write: Callable[[RecordWriter], Any], what: str) -> Records:
    with whole_folder(folder) as temporary:
        with RecordWriter(temporary) as writer:
            note = write(writer)
        sizes = {name: (temporary / name).stat().st_size for name in (RECORDS, PASSAGES)}
        files = [str(file) for file in inputs]
        about = {"format": FORMAT, "files": files, "bytes": sizes, "sha256": sha256(temporary / RECORDS), "note": note}
        write_sealed(temporary / _ABOUT, about)
    say(
        f"{what}: {in_bytes(sum(sizes.values()))} stored in {folder}, which later starts read; it can be deleted at "
        "any time"
    )
    found = Records.opened(folder)
    remove_unused(folder.parent, RECORDS, _ABOUT)
    return found


def _save(file: Path, arrays: Arrays) -> None:
    with file.open("wb") as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


@functools.cache
def _code(patterns: tuple[str, ...]) -> str:
    """Digest of the code that writes the store, so that a store of another version is not used."""
    files = sorted(file for pattern in patterns for file in _ROOT.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
