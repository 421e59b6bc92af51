"""Opens data sources: local files or Hugging Face data sets.

A local file is JSON, a table (CSV, TSV, Parquet) or paired text files, told by its content; archives are unpacked.
Standard library only; `datasets` and its `pyarrow` are imported when needed.
"""

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import ExitStack, suppress
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import DataError, MissingInputError, UserError
from common.files import check_seal, parse_json, seal_of
from datamodules.formats.cells import without_nan
from datamodules.formats.csv_rows import csv_rows, is_table
from datamodules.formats.file_kinds import OtherKindError, is_parquet, opened, rereadable
from datamodules.formats.json_stream import TruncatedError, json_values
from datamodules.formats.row_fields import json_name
from datamodules.formats.trec import CORPUS, cell_rows, judged_files, judged_rows, topics

if TYPE_CHECKING:
    from datasets import Dataset

SPLIT = "split"  # field that `FILE:SPLIT` selects by
HUB = "hf:"  # prefix of a Hugging Face data set, see HUB_FORM
HUB_FORM = "hf:<id or folder>[:<config>]:<split>"

# How each kind of file is read. Increase the number of a kind when another text or id is read of the same file: stores
# of its questions are then written anew, and its indexes refused. What records no number is of version 0.
VERSIONS = {"table": 2, "JSON": 0, "Parquet": 0}
_TABLES = (".csv", ".tsv", ".tab")
_ARCHIVES = (".gz", ".bz2", ".xz", ".zip")
_UNREADABLE = (OtherKindError, DataError, OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_PARQUET_ROWS = 256  # at once, which may have long texts


def rows(source: str) -> Iterator[tuple[str, dict]]:
    """Each row of a source with its position for error messages ("line 3").

    Args:
        source: A file; `FILE:SPLIT` for the rows whose field `split` is SPLIT, such as freshqa.csv:TEST; a folder of
            BEIR for its corpus, `FOLDER:SPLIT` or `QUERIES:QRELS` for judged queries (`datamodules.formats.trec`); or
            `hf:<id or local data-set folder>[:<config>]:<split>`.

    Raises:
        UserError: Immediately, if a data-set name is invalid; later, if the data set cannot be opened.
        MissingInputError: Immediately, if there is no such file; later, if it or the data set cannot be read.
        ArtifactError: Immediately, if its SHA-256 stands beside it and is another's.
        DataError: While reading: truncated, corrupt, empty, not UTF-8, neither JSON nor CSV, a row that is not an
            object, of a kind that is not read, or no row of the split.
    """
    if source.startswith(HUB):
        return _objects(source, _hub_values(source, *_hub_name(source)))
    if judged := judged_files(source):
        queries, qrels = judged
        is_table = _kind(queries) == "table"
        asked = topics(cells_of(queries)) if is_table else _objects(str(queries), _file_values(queries))
        return judged_rows(str(queries), asked, str(qrels), cells_of(qrels))
    path, split = _existing(source)
    if (sealed := seal_of(path)).is_file():
        _check_seal(path, *((each.st_size, each.st_mtime_ns) for each in (path.stat(), sealed.stat())))
    found = _objects(str(path), _file_values(path))
    return found if split is None else _of_split(source, found, split)


_check_seal = cache(lambda path, *_: check_seal(path))  # once as long as size and time of file and seal are the same


def cells_of(path: Path) -> Iterator[tuple[str, dict]]:
    """The cells of each line of one of TREC's files.

    Raises:
        MissingInputError, DataError: As `rows`.
    """
    return _objects(str(path), cell_rows(path))


def content_files(source: str) -> list[Path]:
    """The files that hold what `rows` reads: the source's own, or those in which `datasets` keeps a data set.

    Raises:
        As `rows`.
    """
    if source.startswith(HUB):
        return [Path(file["filename"]) for file in _hub_data(source, *_hub_name(source)).cache_files]
    return [*map(rereadable, judged_files(source) or [_existing(source)[0]])]


def versions_of(files: Iterable[Path]) -> dict[str, int]:
    """The kinds of files, told by their content, with the version of how each is read."""
    kinds = {_kind(path) for path in files}
    return {kind: version for kind, version in VERSIONS.items() if kind in kinds}


def versions_by_name(sources: Iterable[str]) -> dict[str, int]:
    """The kinds of files that may be gone, as `versions_of` of release 0.3 and before: version 0."""
    names = [_plain_name(Path(file_of(source)[0])) for source in sources]
    return {"table": 0} if any(name.endswith(_TABLES) for name in names) else {}


def first_fields(path: Path) -> Set[str]:
    """Whether the first line of a file is a JSON object with these fields, and with no others but `more`."""
    try:
        with path.open(encoding="utf-8") as file:
            return set(parse_json(file.readline()).keys())
    except (ValueError, AttributeError):  # not UTF-8, not JSON, or not an object
        return set()


def local_files(source: str) -> list[Path]:
    """The files that a source names on this machine, which may not be there."""
    return [*(judged_files(source) or [file_of(source)[0]])]


def part_of(source: str) -> str | None:
    """The part of `content_files(source)` that the source names.

    The split of `FILE:SPLIT`, the whole name of a Hugging Face data set, else None.
    """
    return source if source.startswith(HUB) else file_of(source)[1]


def _existing(source: str) -> tuple[Path, str | None]:
    path, split = file_of(source)
    if path.is_dir():
        raise DataError(f"{source} is a folder: give one file of it, or a data set as {HUB_FORM}")
    if not path.exists():
        raise MissingInputError(f"{source} does not exist: give a JSON or JSON Lines file, or a data set as {HUB_FORM}")
    return path, split


def file_of(source: str) -> tuple[Path, str | None]:
    """The path of a local source, of a folder of BEIR its corpus, and its split; None without one."""
    path, (name, _, split) = Path(source), source.rpartition(":")
    if (path / CORPUS).is_file():
        return path / CORPUS, None
    return (Path(name), split) if name and split and not path.exists() and Path(name).is_file() else (path, None)


def _of_split(source: str, found: Iterator[tuple[str, dict]], split: str) -> Iterator[tuple[str, dict]]:
    """The rows whose field `split` has this value."""
    known: dict[str, None] = {}
    for place, row in found:
        if row.get(SPLIT) == split:
            yield place, row
        known[str(row.get(SPLIT, f"no field {SPLIT!r}"))] = None
    if split not in known:
        raise DataError(f"{source} has no row of the split {split!r}; its splits: {', '.join(sorted(known))}.")


def paired_lines(source: str, columns: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, dict]]:
    """A row per line of several text files that belong together line by line; gzip'd files read as they are.

    Args:
        source: Name of the whole for error messages.
        columns: Name of a field and the file with its values.

    Raises:
        MissingInputError: Immediately, if there is no such file; later, if one cannot be read.
        DataError: While reading: truncated, corrupt, empty, not UTF-8, or files of different lengths.
    """
    for name, path in columns:
        if not path.exists():
            raise MissingInputError(
                f"{path} does not exist: it is to hold the field {name!r} of every row, line by line."
            )
    return _objects(source, _paired_values(columns))


def _objects(source: str, values: Iterator[tuple[str, object]]) -> Iterator[tuple[str, dict]]:
    """Check that there are values and that all are objects; errors of the file are raised with its name."""
    count = 0
    try:
        for place, value in values:
            if not isinstance(value, dict):
                raise DataError(f"{place}: the row is {json_name(value)}, not an object")
            yield place, value
            count += 1
    except (TruncatedError, EOFError) as error:
        raise DataError(f"{source} is truncated: {count} rows read. Fetch it again.") from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{source} is a corrupt gzip archive after {count} rows ({error}). Fetch it again.") from error
    except (lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataError(f"{source} is a corrupt archive after {count} rows ({error}). Fetch it again.") from error
    except OtherKindError as error:
        raise DataError(f"{source} is {error}.") from error
    except DataError as error:
        raise DataError(f"{source}, {error}. Correct it or fetch the file again.") from error
    except OSError as error:
        if error.errno is None:  # of bz2
            raise DataError(f"{source} is a corrupt archive after {count} rows ({error}). Fetch it again.") from error
        raise MissingInputError(
            f"{source} cannot be read: {error.strerror or error}. Check the disk and its permissions."
        ) from error
    if not count:
        raise DataError(f"{source} is empty: it holds no rows. Fetch it again.")


def _plain_name(path: Path) -> str:
    """The name of a file as it would be without an archive, in small letters."""
    name = path.name.lower()
    for suffix in _ARCHIVES:
        name = name.removesuffix(suffix)
    return name


def _kind(path: Path) -> str:
    """A key of VERSIONS; empty for a file that cannot be read, or is of another kind, such as those of `datasets`."""
    if is_parquet(rereadable(path)):
        return "Parquet"
    with suppress(*_UNREADABLE), ExitStack() as stack:
        return "table" if is_table(opened(rereadable(path), stack), _plain_name(path).endswith(_TABLES)) else "JSON"
    return ""


def _file_values(path: Path) -> Iterator[tuple[str, object]]:
    kind, path = _kind(path), rereadable(path)
    if kind == "Parquet":
        yield from _parquet_values(path)
        return
    with ExitStack() as stack:
        yield from (csv_rows if kind == "table" else json_values)(opened(path, stack))


def _parquet_values(path: Path) -> Iterator[tuple[str, object]]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise OtherKindError("a Parquet file, which needs the package pyarrow: pip install pyarrow") from error
    try:
        with ParquetFile(path) as table:
            found = (row for batch in table.iter_batches(_PARQUET_ROWS) for row in batch.to_pylist())
            for number, row in enumerate(found, 1):
                yield f"row {number}", without_nan(row)
    except ArrowException as error:
        raise OtherKindError(f"a corrupt Parquet file ({_first_line(error)}): fetch it again") from error


def _paired_values(columns: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, object]]:
    with ExitStack() as stack:
        files = [opened(rereadable(path), stack) for _, path in columns]
        for number, lines in enumerate(zip_longest(*files), 1):
            if None in lines:
                short, long = (columns[lines.index(line)][1] for line in (None, next(filter(None, lines))))
                raise DataError(f"line {number}: {long} has this line, {short} ends before it")
            try:
                yield f"line {number}", {name: line.decode() for (name, _), line in zip(columns, lines, strict=True)}
            except UnicodeDecodeError as error:
                raise DataError(f"line {number}: not UTF-8: byte 0x{error.object[error.start]:02x}") from error


def _hub_name(source: str) -> tuple[str, str | None, str]:
    """Id or folder, configuration and split of a data set's name."""
    parts = source.removeprefix(HUB).split(":")
    if len(parts) not in (2, 3) or not all(parts):
        raise UserError(f"{source!r} names no data set and split: write {HUB_FORM}")
    return parts[0], parts[1] if len(parts) == 3 else None, parts[-1]


def _hub_values(source: str, name: str, config: str | None, split: str) -> Iterator[tuple[str, object]]:
    for number, row in enumerate(_hub_data(source, name, config, split), 1):
        yield f"row {number}", without_nan(row)


def _hub_data(source: str, name: str, config: str | None, split: str) -> "Dataset":
    try:
        import datasets
    except ImportError as error:
        raise UserError(f"{source} needs the package datasets: pip install datasets") from error
    try:
        return datasets.load_dataset(name, config, split=split)
    except (FileNotFoundError, ConnectionError) as error:  # unknown data set, or no network
        raise MissingInputError(
            f"{source} was not found: {_first_line(error)}. Check the id, or give a file."
        ) from error
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        raise UserError(f"{source} cannot be opened as {HUB_FORM}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
