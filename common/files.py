"""Files that are either whole or absent: temp file, fsync, rename; and the sha256 manifests that prove them later.
Standard library only."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.errors import ArtifactError, MissingInputError

TEMPORARY = ".tmp-"  # prefix of everything half-written; swept by the next writer of the same name
_OLD = ".old"  # marks a folder set aside while its successor takes its place


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder durable: on POSIX a rename survives a power cut only after this.

    Windows opens no folders and needs no such call.
    """
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(path: Path, mark: str = "") -> Path:
    return path.with_name(f"{TEMPORARY}{os.getpid()}{mark}-{path.name}")


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # os.kill would send Ctrl-C there: leave the files of every other process alone
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sweep(path: Path) -> None:
    """Clear away what killed writers of `path` left beside it, and put back the whole folder that one of them had set aside.

    What bears our own process number is a namesake's (containers number their processes alike), for no process writes the
    same path twice at a time.
    """
    left_by = re.compile(rf"{re.escape(TEMPORARY)}(\d+)({re.escape(_OLD)})?-{re.escape(path.name)}")
    for left in path.parent.iterdir():
        match = left_by.fullmatch(left.name)
        if match is None or (int(match[1]) != os.getpid() and _is_alive(int(match[1]))):
            continue
        if match[2] and not path.exists():
            os.replace(left, path)
        elif left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write(temporary)` and rename the result to `path`, so that `path` is never half-written.

    Args:
        path: Final place; its folder is made.
        write: Writes the whole file to the path it is given.

    Raises:
        ArtifactError: If the disk refuses (full, read-only, no permission); nothing is left behind.
    """
    temporary = _temporary(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        fsync_folder(path.parent)
    except OSError as error:
        raise ArtifactError(
            f"{path}: cannot write: {error.strerror or error}. Free space or choose another folder."
        ) from error
    finally:
        with suppress(OSError):  # it is gone after the rename, and its folder may never have been
            temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically.  Errors as `write_atomically`."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: object) -> None:
    """Write indented JSON atomically.  Errors as `write_atomically`."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, cure: str) -> dict:
    """Read a JSON object that this project wrote.

    Args:
        path: The file.
        cure: What to type when it is missing or corrupt; ends the error line.

    Raises:
        MissingInputError: If there is no such file.
        ArtifactError: If it is not a JSON object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingInputError(f"{path} does not exist. {cure}") from error
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON ({error}). {cure}") from error
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} holds no JSON object. {cure}")
    return value


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder that appears complete or not at all.

    Yields a temporary folder beside `path`; on a clean exit every file in it is fsync'd and it takes `path`'s place (the
    old folder goes only then); on an error it is removed and the old one stays.  A process killed between the two renames
    leaves the old folder aside; the next writer of `path` puts it back first.

    Raises:
        ArtifactError: If the disk refuses.
    """
    temporary = _temporary(path)
    retired = _temporary(path, _OLD)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb+") as handle:
                    os.fsync(handle.fileno())
            else:
                fsync_folder(file)
        fsync_folder(temporary)
        if path.exists():
            os.replace(path, retired)
        os.replace(temporary, path)
        fsync_folder(path.parent)
    except OSError as error:
        raise ArtifactError(
            f"{path}: cannot write: {error.strerror or error}. Free space or choose another folder."
        ) from error
    finally:
        if retired.exists() and not path.exists():  # whatever came between the two renames, Ctrl-C included
            os.replace(retired, path)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(retired, ignore_errors=True)


def sha256(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file below a folder, by its relative POSIX path, sorted."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): sha256(p) for p in files}


def verify(folder: Path, expected: dict[str, str], cure: str) -> None:
    """Check the files of a folder against a manifest.

    Args:
        folder: Where the files lie.
        expected: Relative path -> sha256, as `digests` gives.
        cure: What to type when they differ; ends the error line.

    Raises:
        ArtifactError: If a file is missing or differs; names the first.
    """
    for name, digest in expected.items():
        file = folder / name
        if not file.is_file():
            raise ArtifactError(f"{file} is missing though the manifest lists it. {cure}")
        if sha256(file) != digest:
            raise ArtifactError(f"{file} is corrupt: its sha256 differs from the manifest. {cure}")
