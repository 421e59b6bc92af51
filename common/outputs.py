"""Output files and folders of commands: what may be replaced, and the lock under which they are written.

A command replaces only what it wrote itself; everything else at its --out is refused by name.  Standard library and
filelock only."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from common.errors import UserError
from common.files import TEMPORARY, read_json
from common.locks import exclusive

_OF_FILE_MANAGERS = {".DS_Store", "Thumbs.db", "desktop.ini"}


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a command.  Subclasses check what is at its path.

    Args:
        command: What the user typed, e.g. `infer.py export`.
        what: What the command writes, e.g. "an ONNX export".
    """

    command: str
    what: str

    def check(self, path: Path) -> None:
        """Refuse a path that this command may not write.

        Raises:
            UserError: If something is there that the command did not write, the path is a symbolic link, or the
                current folder is in it.
        """
        if path.is_symlink() or path.name == ".." or Path.cwd().is_relative_to(path.resolve()):
            raise UserError(
                f"{path} is a symbolic link, ends with .., or is the current folder or one above it: not replaced. "
                "Choose another --out."
            )
        if path.exists() and not self._is_own(path):
            raise UserError(
                f"{path} exists and is not {self.what} of {self.command}: not replaced. Choose another --out."
            )

    def _is_own(self, path: Path) -> bool:
        raise NotImplementedError

    @contextmanager
    def locked(self, path: Path) -> Iterator[None]:
        """Lock the path and check it; hold the lock from before the first write to the end.

        Raises:
            UserError: As `check`, and if another process is writing the path.
            ArtifactError: If its parent folder cannot be written.
        """
        self.check(path)
        with exclusive(path):
            self.check(path)  # again: another process may have written it in the meantime
            yield

    def check_writable(self, path: Path) -> None:
        """`check`, that no other process is writing the path, and that its parent folder can be written."""
        with self.locked(path):
            pass


@dataclass(frozen=True, slots=True)
class OutputFolder(Output):
    """A folder that a command writes.

    Args:
        own_files: Patterns (relative POSIX paths) of the files that the command wrote into a folder, or None if it did
            not write that folder.
    """

    own_files: Callable[[Path], Iterable[str] | None]

    def _is_own(self, path: Path) -> bool:
        patterns = self.own_files(path) if path.is_dir() and any(path.iterdir()) else ()
        if not path.is_dir() or patterns is None:
            return False
        patterns = list(patterns)
        for file in sorted(path.rglob("*")):
            name, folder = file.relative_to(path).as_posix(), file.is_dir() and not file.is_symlink()
            if folder or file.name in _OF_FILE_MANAGERS or file.name.startswith(TEMPORARY):
                continue
            if not any(fnmatchcase(name, pattern) for pattern in patterns):
                raise UserError(
                    f"{path} holds {name}, which {self.command} did not write: not replaced. "
                    "Move that file away, or choose another --out."
                )
        return True


@dataclass(frozen=True, slots=True)
class OutputFile(Output):
    """A file that a command writes.

    Args:
        is_own: Whether the command wrote a file.
    """

    is_own: Callable[[Path], bool]

    def _is_own(self, path: Path) -> bool:
        return path.is_file() and (not path.stat().st_size or self.is_own(path))


def manifest_or_none(file: Path) -> dict | None:
    """A JSON object that a command wrote, or None if the file is missing or is not one."""
    try:
        return read_json(file, "")
    except UserError:
        return None


def listed_files(manifest: str, of_command: Callable[[dict], bool] = bool) -> Callable[[Path], list[str] | None]:
    """`OutputFolder.own_files` of a command whose manifest lists its files by name under "sha256".

    Args:
        manifest: Name of the manifest.
        of_command: Whether a manifest was written by this command.
    """

    def own_files(folder: Path) -> list[str] | None:
        content = manifest_or_none(folder / manifest)
        if content is None or not isinstance(content.get("sha256"), dict) or not of_command(content):
            return None
        names = [manifest, *(name.replace("[", "[[]") for name in content["sha256"])]
        return [*names, *(f"{name}.sha256" for name in names)]

    return own_files


def known_files(report: str, *names: str) -> Callable[[Path], list[str] | None]:
    """`OutputFolder.own_files` of a command that writes `report` and files that match the patterns `names`."""
    return lambda folder: [report, *names] if (folder / report).is_file() else None


def partial_folder(out: Path) -> Path:
    """Where what an interrupted command has computed is kept."""
    return Path(f"{out}.partial")
