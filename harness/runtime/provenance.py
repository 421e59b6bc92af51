"""What the command line built an object from, so that kept work is recognized as that of the same system.

Folders count by what they hold, not by their names."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from common.files import sha256

MANIFESTS = ("serving.json", "index.json")  # of serving folders and of indexes: their digest stands for the folder
_ARGUMENTS: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def construct(class_type: type, *args: Any, **kwargs: Any) -> Any:
    """Build an object and remember of what: an instantiator for jsonargparse, which gives all arguments by name."""
    made = class_type(*args, **kwargs)
    if not args:
        with suppress(TypeError):  # no weak references or no hash: it stays unknown
            _ARGUMENTS[made] = kwargs
    return made


def configuration(made: object) -> dict[str, Any] | None:
    """The class and the arguments that an object was built from, JSON types only.

    Serving folders and indexes stand as the digest of their manifest, other files and folders as sizes and times.  None
    if the object, or one it was built from, did not come from the command line: nobody knows what it is made of.
    """
    try:
        return _described(made)
    except LookupError:
        return None


def _described(made: object) -> dict[str, Any]:
    try:
        arguments = _ARGUMENTS[made]
    except TypeError as error:  # as in `construct`
        raise LookupError(made) from error
    kind = type(made)
    return {"class": f"{kind.__module__}.{kind.__qualname__}"} | {n: _plain(value) for n, value in arguments.items()}


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Path):  # a bare word is a name, whatever lies in the working directory
        place = isinstance(value, Path) or os.sep in value
        return _on_disk(Path(value)) if place and os.path.exists(value) else str(value)
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _described(value)


def _on_disk(path: Path) -> object:
    """What stands for a file or folder: the digest of its manifest, or sizes in bytes and times of change."""
    for name in MANIFESTS:
        manifest = path / name
        if manifest.is_file():
            return {manifest.name: sha256(manifest)}
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    facts = ((each, each.stat()) for each in files)
    return [[each.relative_to(path).as_posix(), stat.st_size, stat.st_mtime_ns] for each, stat in facts]


def fingerprint(value: object) -> str:
    """sha256 of a JSON value in its one canonical spelling."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def differences(recorded: dict, wanted: dict) -> str:
    """The names of what differs between two recipes, for an error line."""
    return ", ".join(sorted(key for key in recorded.keys() | wanted.keys() if recorded.get(key) != wanted.get(key)))
