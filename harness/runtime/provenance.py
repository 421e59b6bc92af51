"""Provenance: the arguments that the command line built an object from are kept on the object.

So saved results are reused only for the same configuration. Folders are identified by their content, not by their
names.
"""

import importlib.metadata
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from common.backends import by_onnx
from common.files import sha256

MANIFESTS = ("serving.json", "index.json")  # of serving folders and indexes; a manifest's sha256 identifies its folder
LIBRARIES = ("torch", "transformers", "bm25s")  # their versions may change the last bits of a result
BUILT = "built_from"  # attribute: id and arguments of the object; a copy, which may be changed, has another id


def construct(class_type: type, *args: Any, **kwargs: Any) -> Any:
    """Build an object and keep its arguments: an instantiator for jsonargparse, which passes all arguments by name."""
    instance = class_type(*args, **kwargs)
    if not args:
        _keep(instance, kwargs)
    return instance


def reusing(owner: object = None) -> Callable[..., Any]:
    """`construct`, but for an object with the class and the arguments of a known one, which is used again.

    Known are the objects within `owner`, and the language models that were built and are in use: the systems that a
    command compares share them, and its judge.

    Args:
        owner: Built by the command line, as all that is within it.
    """
    known, models = [*_within(owner)], WeakSet[Any]()

    def build(class_type: type, *args: Any, **kwargs: Any) -> Any:
        for each in () if args else (*known, *models):
            if type(each) is class_type and _arguments_of(each) == kwargs:
                return each
        instance = construct(class_type, *args, **kwargs)
        if hasattr(class_type, "reply"):
            with suppress(TypeError):  # it has slots, or no hash: it is not shared
                models.add(instance)
        return instance

    return build


def with_arguments(instance: Any, **changes: Any) -> Any:
    """A copy with other values of arguments that are attributes of the same names, as if it were built from them."""
    made = copy(instance)
    vars(made).update(changes)
    if (arguments := _arguments_of(instance)) is not None:
        _keep(made, {**arguments, **changes})
    return made


def _keep(instance: object, arguments: dict[str, Any]) -> None:
    with suppress(AttributeError, TypeError):  # it takes no attributes: its configuration stays unknown
        object.__setattr__(instance, BUILT, (id(instance), arguments))  # also of a frozen one


def _arguments_of(instance: object) -> dict[str, Any] | None:
    """The arguments from which the command line built an object; None if it did not build it."""
    owner, arguments = getattr(instance, BUILT, (None, None))
    return arguments if owner == id(instance) else None


def _within(value: object) -> Iterator[object]:
    """The objects that a value is, holds or was built from."""
    if isinstance(value, Mapping | list | tuple):
        parts = value.values() if isinstance(value, Mapping) else value
    elif (arguments := _arguments_of(value)) is not None:
        yield value
        parts = arguments.values()
    else:
        return
    for part in parts:
        yield from _within(part)


def configuration(instance: object) -> dict[str, Any] | None:
    """The class and the arguments that an object was built from, JSON types only.

    Of an outside class also its file's sha256.

    Serving folders and indexes are represented by the sha256 of their manifest, other files and folders by sizes and
    modification times. An object with an attribute `identity` is represented by it instead: some arguments of a client,
    such as a timeout or the folder of its cache, change no result. None if the object, or one of its arguments, was not
    built by the command line.
    """
    try:
        return _describe(instance)
    except LookupError:
        return None


def _describe(instance: object) -> dict[str, Any]:
    kind, arguments = type(instance), _arguments_of(instance)
    if arguments is None:
        raise LookupError(instance)
    arguments = getattr(instance, "identity", arguments)
    if arguments is None:  # the part says that it is not known
        raise LookupError(instance)
    return _class_record(kind) | {n: recorded(value) for n, value in arguments.items()}


def _class_record(kind: type) -> dict[str, Any]:
    """The class by name; one from outside this package also by its file, which may be changed between runs."""
    record: dict[str, Any] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
    if kind.__module__.partition(".")[0] != __name__.partition(".")[0]:
        with suppress(OSError, TypeError):  # defined in no file
            record["file"] = sha256(Path(inspect.getfile(kind)))
    return record


def recorded(value: object) -> Any:
    """An argument in JSON types, files and folders by their contents or sizes; see `configuration`.

    Raises:
        LookupError: If it is an object that the command line has not built.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Path):  # a string without a separator is a name, even if a file of that name exists
        is_path = isinstance(value, Path) or os.sep in value
        return _describe_path(Path(value)) if is_path and os.path.exists(value) else str(value)
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): recorded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [recorded(each) for each in value]
    return _describe(value)


def _describe_path(path: Path) -> object:
    """The sha256 of a folder's manifest; without a manifest, sizes (bytes) and modification times (ns) of the files."""
    for name in MANIFESTS:
        manifest = path / name
        if manifest.is_file():
            return {manifest.name: sha256(manifest)}
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    stats = ((each, each.stat()) for each in files)
    return [[each.relative_to(path).as_posix(), stat.st_size, stat.st_mtime_ns] for each, stat in stats]


def models_of(system: object) -> dict[str, Any]:
    """The parts of a system that generate text, by name.

    Its reader, its rewriter, and the rewriters of the retrievers that it searches through.

    Each may have `facts`, lines for a report, and a `recipe`, what its results depend on besides its options.
    """
    found = {"reader": reader} if (reader := getattr(system, "reader", None)) is not None else {}
    if (rewriter := getattr(system, "rewriter", None)) is not None:
        found["rewriter"] = rewriter
    around = [getattr(system, "retriever", None), *(getattr(system, "retrievers", None) or ())]
    for number, retriever in enumerate(each for each in around if each is not None):
        place = f"retriever {number}" if number else "retriever"
        found |= {f"{place}'s {name}": part for name, part in models_of(retriever).items()}
    return found


def computed_in(part: object) -> str | None:
    """Name of the data type of a loaded model's matrix products, such as float32, for reports; None if it has none."""
    dtype = getattr(part, "inference_dtype", None)
    if exported := getattr(getattr(part, "network", None), "file", None):
        return f"{exported.name} by ONNX Runtime"
    return None if dtype is None else str(dtype).removeprefix("torch.")


def hardware() -> str:
    """The meaning of `auto` on this machine, for device and precision: results that depend on it are not mixed."""
    from models.devices import compute_dtype, resolve_device

    device = resolve_device("auto")
    return f"{device.type}, auto is {compute_dtype('auto', device)}" + ", encoders by ONNX Runtime" * by_onnx()


def library_versions() -> dict[str, str]:
    """The versions of the libraries that may change the last bits of a result."""
    return {name: importlib.metadata.version(name) for name in LIBRARIES}


def differences(recorded: dict, wanted: dict) -> str:
    """The keys whose values differ between two dictionaries, for a message."""
    return ", ".join(sorted(key for key in recorded.keys() | wanted.keys() if recorded.get(key) != wanted.get(key)))
