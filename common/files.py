"""Atomic writes of files and folders (temporary name, fsync, rename), and sha256 manifests.  Standard library only."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common.errors import ArtifactError, MissingInputError

TEMPORARY = ".tmp-"  # name prefix of incomplete files and folders; the next writer of the same path deletes them
_SAMPLE_BLOCKS, _SAMPLE_BYTES = 256, 2**16
_OLD = ".old"  # marks the previous version of a folder while it is being replaced


def fsync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk: on POSIX a rename survives a power failure only after this.

    Windows needs none.
    """
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary_path(path: Path, mark: str = "") -> Path:
    return path.with_name(f"{TEMPORARY}{os.getpid()}{mark}-{path.name}")


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # os.kill would send Ctrl-C there: leave the files of every other process alone
        return True
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _remove_leftovers(path: Path) -> None:
    """Delete temporary files that killed writers of `path` left behind; restore a folder that one had moved aside.

    Leftovers with our own process id belong to a dead process (ids repeat between containers): a process never writes
    the same path twice at the same time.
    """
    pattern = re.compile(rf"{re.escape(TEMPORARY)}(\d+)({re.escape(_OLD)})?-{re.escape(path.name)}")
    for left in path.parent.iterdir():
        match = pattern.fullmatch(left.name)
        if match is None or (int(match[1]) != os.getpid() and _is_alive(int(match[1]))):
            continue
        if match[2] and not path.exists():
            os.replace(left, path)
        elif left.is_dir():
            shutil.rmtree(left)
        else:
            left.unlink()


@contextmanager
def write_errors(
    path: Path, cure: str = "Free space or choose another folder.", about: Collection[Path] = ()
) -> Iterator[None]:
    """Turn the operating system's errors while `path` is written into ArtifactError, whose line ends with `cure`.

    Args:
        path: What is written.
        cure: What to do.
        about: If given, an error that names a file is turned only if the file is one of these paths or inside one.
    """
    try:
        yield
    except OSError as error:
        named = error.filename if isinstance(error.filename, str | Path) else None
        if about and named is not None and not any(Path(named).absolute().is_relative_to(p.absolute()) for p in about):
            raise
        raise ArtifactError(f"{path}: cannot write: {error.strerror or error}. {cure}") from error


def create_parents(path: Path) -> list[Path]:
    """Create the missing folders above `path`; returns them, the innermost first.

    Raises:
        ArtifactError: If that fails, or one of them is a file.
    """
    with write_errors(path):
        missing = [folder for folder in path.parents if not folder.exists()]
        for existing in path.parents[len(missing) : len(missing) + 1]:
            if not existing.is_dir():
                raise ArtifactError(f"{path}: cannot write: {existing} is a file. Choose another folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
    return missing


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write(temporary)` and rename the result to `path`, so that `path` is never half-written.

    Args:
        path: Final path; its folder is created.
        write: Writes the complete file to the path it is given.

    Raises:
        ArtifactError: If writing fails (disk full, read-only, no permission); no temporary file is left.
    """
    temporary = _temporary_path(path)
    try:
        with write_errors(path):
            create_parents(path)
            _remove_leftovers(path)
            write(temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
            fsync_folder(path.parent)
    finally:
        with suppress(OSError):  # already renamed, or its folder was never created
            temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically.  Errors as `write_atomically`."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: object) -> None:
    """Write indented JSON atomically.  Errors as `write_atomically`."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: If it is not JSON, not UTF-8, or nested more deeply than Python reads, about a thousand levels.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read_json(path: Path, cure: str) -> dict:
    """Read a JSON object that this project wrote.

    Args:
        path: The file.
        cure: What to type when it is missing or corrupt; appended to the error message.

    Raises:
        MissingInputError: If the file does not exist.
        ArtifactError: If it is not a JSON object.
    """
    try:
        value = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingInputError(f"{path} does not exist. {cure}") from error
    except ValueError as error:
        raise ArtifactError(f"{path} is not valid JSON ({error}). {cure}") from error
    if not isinstance(value, dict):
        raise ArtifactError(f"{path} is not a JSON object. {cure}")
    return value


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Write a folder atomically.

    Yields a temporary folder beside `path`.  On normal exit its files are fsync'd, get the rights of the umask, and it
    replaces `path`; after an exception it is deleted and the previous folder stays.  If the process is killed between
    the two renames, the next writer of `path` first restores the previous folder.

    Raises:
        ArtifactError: If writing fails.
    """
    temporary = _temporary_path(path)
    previous = _temporary_path(path, _OLD)
    try:
        with write_errors(path):
            create_parents(path)
            _remove_leftovers(path)
            temporary.mkdir()
        # the caller may read other files meanwhile, whose errors are its own
        with write_errors(path, about=(temporary, previous, path)):
            yield temporary
            readers = temporary.stat().st_mode & 0o666  # as the umask has it
            for file in temporary.rglob("*"):
                if file.is_file():
                    if not file.stat().st_mode & 0o077:  # safetensors 0.8 writes for the owner alone
                        file.chmod(readers)
                    with file.open("rb+") as handle:
                        os.fsync(handle.fileno())
                else:
                    fsync_folder(file)
            fsync_folder(temporary)
            if path.exists():
                os.replace(path, previous)
            os.replace(temporary, path)
            fsync_folder(path.parent)
    finally:
        if previous.exists() and not path.exists():  # interrupted between the two renames, e.g. by Ctrl-C
            os.replace(previous, path)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(previous, ignore_errors=True)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """A folder for intermediate files beside `path`, deleted at the end, with those that killed processes left behind.

    Raises:
        ArtifactError: If it cannot be created.
    """
    scratch = path.with_name(f"{path.name}.scratch")
    temporary = _temporary_path(scratch)
    with write_errors(path):
        create_parents(path)
        _remove_leftovers(scratch)
        temporary.mkdir()
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where the file system has no hard links.

    Neither may be written to afterwards.

    Args:
        source: The file.
        target: Does not exist.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def check_space(path: Path, needed_bytes: int) -> None:
    """Refuse to begin to write what does not fit.

    Args:
        path: What is to be written; its folder exists.
        needed_bytes: Its size.

    Raises:
        ArtifactError: If less is free on the disk.
    """
    free_bytes = shutil.disk_usage(path.parent).free
    if free_bytes < needed_bytes:
        raise ArtifactError(
            f"{path}: cannot write: it takes {needed_bytes / 2**30:.1f} GiB, and {free_bytes / 2**30:.1f} GiB are "
            "free. Free space or choose another folder."
        )


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal_of(path: Path) -> Path:
    """Path of the checksum file beside a file, in the format of sha256sum."""
    return path.with_name(f"{path.name}.sha256")


def seal(path: Path) -> None:
    """Write the SHA-256 of a finished file beside it; `check_seal` compares them.  Errors as `write_atomically`."""
    write_text(seal_of(path), f"{sha256(path)}  {path.name}\n")


def seal_all(folder: Path) -> None:
    """`seal` every file of a folder."""
    for path in sorted(folder.iterdir()):
        seal(path)


def check_seal(path: Path) -> None:
    """Check a file against the checksum file beside it; a file without one passes.

    Raises:
        ArtifactError: If they differ.
    """
    if seal_of(path).is_file() and sha256(path) not in seal_of(path).read_text(errors="replace"):
        raise ArtifactError(
            f"{path} is corrupt or was edited: its sha256 is not the one in {seal_of(path)}. Write or fetch it again; "
            f"if you have edited it, type rm {seal_of(path)}."
        )


def sampled_sha256(path: Path) -> str | None:
    """Digest of a file's size and of 256 blocks of 64 KiB spread evenly over it, first and last bytes included.

    It finds a file of another content, a copy that ended early, and a lost part of more than a 256th of the file, for
    16 MiB of reading; not a single flipped bit elsewhere.

    Returns:
        The digest in hexadecimal; None if the file is not larger than the blocks, so that its sha256 costs no more.
    """
    size = path.stat().st_size
    if size <= _SAMPLE_BLOCKS * _SAMPLE_BYTES:
        return None
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb", buffering=0) as file:
        for block in range(_SAMPLE_BLOCKS):
            file.seek((size - _SAMPLE_BYTES) * block // (_SAMPLE_BLOCKS - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def sampled_share(size: int) -> float:
    """The share of a file of so many bytes that `sampled_sha256` reads."""
    return _SAMPLE_BLOCKS * _SAMPLE_BYTES / size


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 digest of every file below a folder, by relative POSIX path, sorted."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): sha256(p) for p in files}


def verify(folder: Path, expected: dict[str, str], cure: str) -> None:
    """Check the files of a folder against a manifest.

    Args:
        folder: The folder to check.
        expected: Relative path -> sha256, as `digests` returns.
        cure: What to type when they differ; appended to the error message.

    Raises:
        ArtifactError: If a file is missing or differs; names the first one.
    """
    for name, digest in expected.items():
        file = folder / name
        if not file.is_file():
            raise ArtifactError(f"{file} is missing though the manifest lists it. {cure}")
        if sha256(file) != digest:
            raise ArtifactError(f"{file} is corrupt: its sha256 differs from the manifest. {cure}")
