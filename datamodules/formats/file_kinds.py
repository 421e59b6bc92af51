"""Opens a local file as UTF-8 bytes, however it is packed and encoded; an unsupported kind of file is an error.

Archives (gzip, bzip2, xz, a zip of one file) and UTF-16 or UTF-32 are told by their first bytes. A pipe is kept in a
temporary file, so that it can be read again. Standard library only.
"""

import bz2
import codecs
import functools
import gzip
import io
import lzma
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from common.errors import ArtifactError, DataError
from datamodules.formats.json_stream import CHUNK_BYTES, TruncatedError

PARQUET = b"PAR1"
_ARCHIVES: dict[bytes, Callable[[io.BufferedReader], io.BufferedIOBase]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_ZIP = b"PK\x03\x04"
_UNPACK = "unpack it, and give the file in it"
_EXPORT = "write its rows as JSON Lines, CSV or Parquet"
_EXCEL = "an Excel workbook: save its sheet as CSV (UTF-8)"
_DOCUMENT = "type infer.py index --documents FOLDER for documents"
_OTHER_KINDS = {  # by their first bytes
    b"\x28\xb5\x2f\xfd": f"a Zstandard archive: {_UNPACK}, e.g. by zstd -d",
    b"\x04\x22\x4d\x18": f"an LZ4 archive: {_UNPACK}",
    b"\x1f\x9d": f"a .Z archive: {_UNPACK}",
    b"7z\xbc\xaf\x27\x1c": f"a 7-Zip archive: {_UNPACK}",
    b"Rar!": f"a RAR archive: {_UNPACK}",
    b"PK\x05\x06": "an empty zip archive: fetch it again",
    PARQUET: f"a Parquet file in an archive: {_UNPACK}",
    b"ARROW1": f"an Arrow file: {_EXPORT}",
    b"\xff\xff\xff\xff": f"an Arrow file: {_EXPORT}",
    b"Obj\x01": f"an Avro file: {_EXPORT}",
    b"\x89HDF": f"an HDF5 file: {_EXPORT}",
    b"\x93NUMPY": f"a NumPy file: {_EXPORT}",
    b"SQLite format 3": f"an SQLite database: {_EXPORT}",
    b"%PDF-": f"a PDF file: {_DOCUMENT}",
    b"{\\rtf": "an RTF document: save it as Word or Markdown, and " + _DOCUMENT,
    b"\xd0\xcf\x11\xe0": "a file of an old Office: save a sheet as CSV (UTF-8), a text as .docx",
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself: type git lfs pull where it was cloned",
}
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_MARKUP = re.compile(rb"\s*<(?:\?xml|!--|[a-zA-Z])")
_TAR_AT, _TAR = 257, b"ustar"
_HEAD_BYTES = 512


class OtherKindError(Exception):
    """The file is of a kind that is not read; the message says which, and what to do: `a PDF file: ...`."""


def opened(path: Path, stack: ExitStack) -> io.BufferedReader:
    """The content of a file, unpacked and in UTF-8; closed with the stack.

    Raises:
        OtherKindError: If it is of a kind that is not read.
        OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile: If it cannot be read or unpacked.
        DataError: If it is not in the encoding of its first bytes, immediately or while reading.
    """
    file = stack.enter_context(path.open("rb"))
    while (unpack := _archive(head := _head(file))) is not None:
        file = stack.enter_context(io.BufferedReader(stack.enter_context(unpack(file)), CHUNK_BYTES))
    encoding = _encoding(head)
    if encoding is None:
        _refuse_other_kinds(head)
        return file
    return stack.enter_context(io.BufferedReader(_Utf8(file, encoding), CHUNK_BYTES))


def is_parquet(path: Path) -> bool:
    """Whether a file is a Parquet file."""
    with path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def rereadable(path: Path) -> Path:
    """The path, or where the content of a pipe is kept until the process ends.

    Raises:
        OSError: If the pipe cannot be read.
        ArtifactError: If it cannot be kept.
    """
    about = path.stat()
    if stat.S_ISREG(about.st_mode):
        return path
    return Path(_kept(path, about.st_dev, about.st_ino).name)


@functools.cache
def _kept(path: Path, device: int, inode: int) -> BinaryIO:
    """The content of a pipe in a file that is deleted with the object; the pipe is read once, to its end."""
    with path.open("rb") as pipe:
        try:
            kept = tempfile.NamedTemporaryFile(prefix="pipe-")  # noqa: SIM115 - lives as long as the process
            shutil.copyfileobj(pipe, kept)
            kept.flush()
        except OSError as error:
            raise ArtifactError(
                f"{path} is a pipe, and its content cannot be kept in {tempfile.gettempdir()} "
                f"({error.strerror or error}). Give a file, or set TMPDIR to a folder with space."
            ) from error
    return kept  # type: ignore[return-value]


def _head(file: io.BufferedReader) -> bytes:
    return file.peek(_HEAD_BYTES)[:_HEAD_BYTES]


def _archive(head: bytes) -> Callable[[io.BufferedReader], io.BufferedIOBase] | None:
    if head.startswith(_ZIP):
        return _zip_member
    return next((unpack for start, unpack in _ARCHIVES.items() if head.startswith(start)), None)


def _zip_member(file: io.BufferedReader) -> io.BufferedIOBase:
    """The only file in a zip archive."""
    if not file.seekable():
        raise OtherKindError(f"a zip archive in another archive: {_UNPACK}")
    archive = zipfile.ZipFile(file)
    names = [each.filename for each in archive.infolist() if not each.is_dir()]
    names = [name for name in names if not name.startswith("__MACOSX/")]  # of a Mac, beside each file
    if "[Content_Types].xml" in names:
        excel = any(name.startswith("xl/") for name in names)
        raise OtherKindError(_EXCEL if excel else f"an Office document: {_DOCUMENT}")
    if len(names) != 1:
        raise OtherKindError(f"a zip archive of {len(names)} files: unpack it, and give one of them")
    try:
        return archive.open(names[0])  # type: ignore[return-value]
    except RuntimeError as error:
        raise OtherKindError(f"a zip archive with a password: {_UNPACK}") from error
    except NotImplementedError as error:
        raise OtherKindError(f"a zip archive of a kind that is not read ({error}): {_UNPACK}") from error


def _refuse_other_kinds(head: bytes) -> None:
    for start, kind in _OTHER_KINDS.items():
        if head.startswith(start):
            raise OtherKindError(kind)
    if head[_TAR_AT:].startswith(_TAR):
        raise OtherKindError(f"a tar archive: {_UNPACK}, e.g. by tar -xf")
    if _PICKLE.match(head):
        raise OtherKindError(f"a pickle of Python, which is not read as it could run any program: {_EXPORT}")
    if _HTML.match(head):
        raise OtherKindError("an HTML page, perhaps a server's answer in the place of the file: fetch the file itself")
    if _MARKUP.match(head):
        raise OtherKindError(f"an XML file: {_EXPORT}")


def _encoding(head: bytes) -> str | None:
    """UTF-32 or UTF-16 by the byte order mark, or by the zeros around the first ASCII character; None: neither."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [byte == 0 for byte in head[:4].ljust(4, b"x")]
    return {
        (False, True, True, True): "utf-32-le", (True, True, True, False): "utf-32-be",
        (False, True, False, True): "utf-16-le", (True, False, True, False): "utf-16-be",
    }.get((zeros[0], zeros[1], zeros[2], zeros[3]))  # fmt: skip


class _Utf8(io.RawIOBase):
    """A file of another encoding as UTF-8."""

    def __init__(self, file: io.BufferedReader, encoding: str) -> None:
        self._file, self._encoding = file, encoding
        self._decode = codecs.getincrementaldecoder(encoding)().decode
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            raw = self._file.read(CHUNK_BYTES)
            try:
                self._rest = self._decode(raw, final=not raw).encode()
            except UnicodeDecodeError as error:
                if not raw:
                    raise TruncatedError from error
                raise DataError(f"not {self._encoding.upper()}: {error.reason}") from error
            if not raw:
                break
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
