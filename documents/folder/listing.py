"""The files below a folder of documents, and those that are left out with the reason.  Standard library only."""

import os
from dataclasses import dataclass
from pathlib import Path

from common.errors import MissingInputError, UserError


@dataclass(frozen=True, slots=True)
class File:
    """A file below the folder of documents."""

    name: str  # path in the folder, with forward slashes; bytes that are not UTF-8 as \\xff
    path: Path
    left_out: str = ""  # why it is not read; empty if it is


def check_folder(folder: Path) -> None:
    """Raise an error if there is no such folder.

    Raises:
        MissingInputError: If it does not exist.
        UserError: If it is a file.
    """
    if not folder.exists():
        raise MissingInputError(f"{folder} does not exist. Type --documents FOLDER.")
    if not folder.is_dir():
        raise UserError(
            f"{folder} is a file: --documents takes a folder. For a file of passages type --corpus {folder}."
        )


def list_files(folder: Path) -> list[File]:
    """All files below a folder, sorted by name.

    Hidden files and folders, links to folders, links that lead out of the folder, and what is no regular file are left
    out.

    Raises:
        UserError: If the folder cannot be listed.
    """
    root = folder.resolve()
    found: list[File] = []
    waiting = [root]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(inside) as entries:
                listed = list(entries)
        except OSError as error:
            if inside == root:
                raise UserError(f"{folder} cannot be listed: {error.strerror or error}.") from error
            found.append(File(_name(inside, root) + "/", inside, f"cannot be listed: {error.strerror or error}"))
            continue
        for entry in listed:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                waiting.append(path)
            else:
                found.append(File(_name(path, root), path, _why_left_out(entry, root)))
    return sorted(found, key=lambda file: file.name)


def _name(path: Path, root: Path) -> str:
    return os.fsencode(path.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")


def _why_left_out(entry: os.DirEntry[str], root: Path) -> str:
    """Why a file is not read; empty if it is."""
    if entry.name.startswith("."):
        return "hidden"
    if entry.name.startswith("~$"):
        return "a lock file of a word processor"
    try:
        if entry.is_symlink():
            target = Path(entry.path).resolve(strict=True)
            if not target.is_relative_to(root):
                return "a link that leads out of the folder"
            if target.is_dir():
                return "a link to a folder"
        return "" if entry.is_file() else "no regular file"
    except (OSError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
        return "a link that leads nowhere"
